/** A waveform as bars of one width: fewer than was measured keep what is loudest, more lie between. */

const QUIET = 24; // what is quieter than this isn't shown as if it were loud

/**
 * @param {number[]} peaks lowest and highest value of each stretch, −128 to 127
 * @param {number} bars @returns {number[]} how tall each is, 0 to 1
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
