/** Where every segment lies on the timeline, in samples; lengths not known yet are estimated. */

export const RATE_HZ = 24_000;
const DEFAULT_SAMPLES_PER_CHAR = RATE_HZ / 15;
const LEAST_SAMPLES = RATE_HZ / 2;

/** @typedef {{starts: number[], lengths: number[], total: number, exact: boolean}} Layout */

/** @param {Array<object>} segments @returns {Layout} */
export function layout(segments) {
  const perChar = samplesPerChar(segments);
  const lengths = segments.map((segment) => segmentLength(segment, perChar));
  const starts = [];
  let total = 0;
  for (const samples of lengths) {
    starts.push(total);
    total += samples;
  }
  return { starts, lengths, total, exact: segments.every(known) };
}

/** @returns {number} index of the segment that sounds at `at` samples */
export function segmentAt({ starts, lengths }, at) {
  let low = 0;
  let high = starts.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (starts[middle] <= at) low = middle;
    else high = middle - 1;
  }
  while (low > 0 && lengths[low] === 0) low -= 1;
  return low;
}

function known(segment) {
  return segment.samples !== null || segment.state === "failed" || segment.state === "cancelled";
}

function segmentLength(segment, perChar) {
  if (segment.samples !== null) return segment.samples;
  if (known(segment)) return 0;
  return Math.max(LEAST_SAMPLES, Math.round((segment.text ?? "").length * perChar));
}

function samplesPerChar(segments) {
  let samples = 0;
  let chars = 0;
  for (const segment of segments) {
    if (segment.kind !== "speech" || !segment.samples) continue;
    samples += segment.samples;
    chars += segment.text.length;
  }
  return chars > 200 ? samples / chars : DEFAULT_SAMPLES_PER_CHAR;
}
