/** A recording's waveform with two handles that trim it, moved by pointer or by keys. */
import { Bus } from "../core/bus.js";
import { formatLength } from "../core/format.js";

const LEAST_S = 0.1;
const STEP_S = 0.05;
const STEPS = {
  ArrowLeft: -STEP_S,
  ArrowRight: STEP_S,
  ArrowDown: -STEP_S,
  ArrowUp: STEP_S,
  PageDown: -1,
  PageUp: 1,
};

export class TrimWave {
  /** @type {Bus<import("../core/types").TrimEvents>} */
  events = new Bus();
  #root;
  #canvas;
  #handles;
  #outline = [];
  #duration = 0;

  /** @param {HTMLElement} root with a canvas and, where it can be trimmed, `.wave-start`, `.wave-end` */
  constructor(root) {
    this.#root = root;
    this.#canvas = root.querySelector("canvas");
    this.#handles = [...root.querySelectorAll("[role=slider]")];
    this.#handles.forEach((handle, idx) => {
      handle.addEventListener("keydown", (event) => this.#key(event, idx));
      handle.addEventListener("pointerdown", (event) => this.#grab(event, idx));
    });
    this.#canvas.addEventListener("pointerdown", (event) => this.#press(event));
    new ResizeObserver(() => this.#draw()).observe(root);
  }

  /** @param {Array<number>} outline 0 to 100 @param {number} duration_s @param {number} end_s */
  show(outline, duration_s, end_s = duration_s) {
    this.#outline = outline;
    this.#duration = duration_s;
    this.range = [0, Math.min(end_s, duration_s)];
    this.#place();
  }

  #place() {
    this.#handles.forEach((handle, idx) => {
      const at = this.range[idx];
      handle.style.left = `${(100 * at) / this.#duration}%`;
      handle.setAttribute("aria-valuemin", "0");
      handle.setAttribute("aria-valuemax", this.#duration.toFixed(2));
      handle.setAttribute("aria-valuenow", at.toFixed(2));
      handle.setAttribute("aria-valuetext", formatLength(at));
    });
    this.#draw();
  }

  #move(idx, to) {
    const [start, end] = this.range;
    const least = idx === 0 ? 0 : start + LEAST_S;
    const most = idx === 0 ? end - LEAST_S : this.#duration;
    this.range[idx] = Math.min(most, Math.max(least, to));
    this.#place();
    this.events.emit("moved");
  }

  #key(event, idx) {
    const { key, shiftKey } = event;
    if (key in STEPS) this.#move(idx, this.range[idx] + STEPS[key] * (shiftKey ? 10 : 1));
    else if (key === "Home") this.#move(idx, 0);
    else if (key === "End") this.#move(idx, this.#duration);
    else return;
    event.preventDefault();
    event.stopPropagation();
    this.events.emit("changed");
  }

  /** A press on the waveform moves the nearer handle. */
  #press(event) {
    if (!this.#handles.length) return;
    const at = this.#secondsAt(event);
    const [start, end] = this.range;
    const idx = Math.abs(at - start) < Math.abs(at - end) ? 0 : 1;
    this.#move(idx, at);
    this.#grab(event, idx);
  }

  #grab(event, idx) {
    const handle = this.#handles[idx];
    event.preventDefault();
    handle.focus();
    handle.setPointerCapture(event.pointerId);
    handle.onpointermove = (moved) => this.#move(idx, this.#secondsAt(moved));
    handle.onpointerup = handle.onpointercancel = () => {
      handle.onpointermove = handle.onpointerup = handle.onpointercancel = null;
      this.events.emit("changed");
    };
  }

  #secondsAt({ clientX }) {
    const box = this.#root.getBoundingClientRect();
    return ((clientX - box.left) / box.width) * this.#duration;
  }

  #draw() {
    const { clientWidth: width, clientHeight: height } = this.#canvas;
    if (!width || !this.#outline.length) return;
    const scale = window.devicePixelRatio;
    Object.assign(this.#canvas, { width: width * scale, height: height * scale });
    const pen = this.#canvas.getContext("2d");
    const colours = getComputedStyle(this.#root);
    const [start, end] = this.range.map((at) => (at / this.#duration) * this.#outline.length);
    pen.scale(scale, scale);
    const step = width / this.#outline.length;
    this.#outline.forEach((level, idx) => {
      const inside = idx >= Math.floor(start) && idx <= end;
      pen.fillStyle = colours.getPropertyValue(inside ? "--accent" : "--rule-strong");
      const tall = Math.max(1, Math.sqrt(level / 100) * (height - 4)); // so that quiet audio is visible, too
      pen.fillRect(idx * step, (height - tall) / 2, Math.max(1, step * 0.8), tall);
    });
  }
}
