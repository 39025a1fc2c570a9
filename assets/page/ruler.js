/** The times below the timeline: as many as there is room for, at round seconds. */
import { clock } from "./format.js";

export const RULER_PX = 16;

const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800];
const HOUR_S = 3600;
const LEAST_PX = 90;
const TICK_PX = 4;

/**
 * @param {CanvasRenderingContext2D} pen its fill colour is the ink
 * @param {{left_s: number, px_per_s: number, width: number, top: number}} about
 */
export function drawRuler(pen, { left_s: left, px_per_s: scale, width, top }) {
  const hours = HOUR_S * Math.ceil(LEAST_PX / (HOUR_S * scale));
  const step = STEPS_S.find((seconds) => seconds * scale >= LEAST_PX) ?? hours;
  for (let at = Math.ceil(left / step) * step; (at - left) * scale < width; at += step) {
    const x = Math.round((at - left) * scale);
    pen.fillRect(x, top, 1, TICK_PX);
    const room = width - x;
    if (room > LEAST_PX / 2) pen.fillText(clock(at), x + 4, top + RULER_PX - 5);
  }
}
