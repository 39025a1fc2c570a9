/** Waveforms: bars of the same width, as high as the loudest moment that each stands for. */

const QUIET = 24; // quieter audio isn't scaled up further

/**
 * @param {number[]} peaks lowest and highest value of each stretch, −128 to 127
 * @param {number} bars @returns {number[]} the height of each, 0 to 1
 */
export function barHeights(peaks, bars) {
  const levels = Array.from({ length: peaks.length / 2 }, (_, at) =>
    Math.max(Math.abs(peaks[2 * at]), Math.abs(peaks[2 * at + 1])));
  const most = Math.max(QUIET, ...levels);
  const height = bars < levels.length ? loudest : between;
  return Array.from({ length: bars }, (_, bar) => height(levels, bar / bars, (bar + 1) / bars) / most);
}

function loudest(levels, from, to) {
  return Math.max(...levels.slice(Math.floor(from * levels.length), Math.ceil(to * levels.length)));
}

function between(levels, from, to) {
  const last = levels.length - 1;
  const at = Math.min(last, Math.max(0, ((from + to) / 2) * levels.length - 0.5));
  const [before, after] = [Math.floor(at), Math.min(last, Math.floor(at) + 1)];
  return levels[before] + (levels[after] - levels[before]) * (at - before);
}

const BAR_PX = 3; // with the gap after it

/**
 * Draw a waveform in the pen's fill colour.
 * @param {CanvasRenderingContext2D} pen
 * @param {number[]} peaks as of `barHeights`
 * @param {{left: number, top: number, width: number, height: number}} box
 */
export function drawWave(pen, peaks, { left, top, width, height }) {
  const middle = top + height / 2;
  barHeights(peaks, Math.max(1, Math.floor(width / BAR_PX))).forEach((share, bar) => {
    const tall = Math.max(1, share * height);
    pen.fillRect(left + bar * BAR_PX, middle - tall / 2, BAR_PX - 1, tall);
  });
}

/**
 * Draw a waveform onto a canvas of its own, as large as the page shows it.
 * @param {import("../core/types").PageElement} canvas
 * @param {number[]} peaks @param {string} colour @param {{width: number, height: number}} size in CSS pixels
 */
export function paintWave(canvas, peaks, colour, { width, height }) {
  const ratio = window.devicePixelRatio || 1;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(height * ratio);
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.fillStyle = colour;
  drawWave(pen, peaks, { left: 0, top: 0, width, height });
}
