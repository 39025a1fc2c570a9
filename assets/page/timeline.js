/** The scene as blocks along the foot: one colour a speaker, faint until the sound exists. */
import { byId, safeColour } from "./dom.js";
import { clock } from "./format.js";
import { RATE_HZ } from "./scene.js";

const GAP_PX = 1;
const OPACITY = { saved: 1, generated: 1, started: 0.6, queued: 0.3, planned: 0.22 };
const STEP_S = 5;

/** Event "seek" with `detail` in samples. */
export class Timeline extends EventTarget {
  #root = byId("timeline");
  #canvas = /** @type {HTMLCanvasElement} */ (byId("timeline-blocks"));
  #head = byId("play-head");
  #colours = new Map();
  #segments = [];
  #layout = { starts: [], lengths: [], total: 0 };
  #place = 0;

  constructor() {
    super();
    new ResizeObserver(() => this.#draw()).observe(this.#root);
    this.#root.addEventListener("pointerdown", (event) => this.#press(event));
    this.#root.addEventListener("keydown", (event) => this.#key(event));
  }

  /** @param {Array<object>} segments @param {object} layout @param {Map<string, string>} colours */
  show(segments, layout, colours) {
    this.#segments = segments;
    this.#layout = layout;
    this.#colours = colours;
    this.#root.setAttribute("aria-valuemax", String(Math.round(layout.total / RATE_HZ)));
    this.#draw();
    this.move(this.#place);
  }

  /** @param {number} place in samples */
  move(place) {
    this.#place = place;
    const share = this.#layout.total ? place / this.#layout.total : 0;
    this.#head.style.transform = `translateX(${share * this.#root.clientWidth}px)`;
    const second = String(Math.floor(place / RATE_HZ));
    if (this.#root.getAttribute("aria-valuenow") === second) return;
    this.#root.setAttribute("aria-valuenow", second);
    this.#root.setAttribute("aria-valuetext", clock(place / RATE_HZ));
  }

  #draw() {
    const ratio = window.devicePixelRatio || 1;
    const { clientWidth, clientHeight } = this.#root;
    this.#canvas.width = clientWidth * ratio;
    this.#canvas.height = clientHeight * ratio;
    const pen = this.#canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const scale = this.#layout.total ? clientWidth / this.#layout.total : 0;
    this.#segments.forEach((segment, idx) => this.#block(pen, segment, idx, scale, clientHeight));
  }

  #block(pen, segment, idx, scale, height) {
    const left = this.#layout.starts[idx] * scale;
    const width = Math.max(0.75, this.#layout.lengths[idx] * scale - GAP_PX);
    if (!this.#layout.lengths[idx] || segment.kind === "silence") return;
    pen.globalAlpha = OPACITY[segment.state] ?? 0.22;
    pen.fillStyle = safeColour(this.#colours.get(segment.speaker));
    pen.beginPath();
    pen.roundRect(left, 6, width, height - 12, Math.min(4, width / 2));
    pen.fill();
  }

  #press(event) {
    if (!this.#layout.total) return;
    this.#root.setPointerCapture(event.pointerId);
    const seek = ({ clientX }) => {
      const box = this.#root.getBoundingClientRect();
      this.#seek(((clientX - box.left) / box.width) * this.#layout.total);
    };
    seek(event);
    this.#root.onpointermove = seek;
    this.#root.onpointerup = () => (this.#root.onpointermove = null);
  }

  #key(event) {
    const steps = { ArrowLeft: -STEP_S, ArrowRight: STEP_S, PageUp: -30, PageDown: 30 };
    if (event.key in steps) this.#seek(this.#place + steps[event.key] * RATE_HZ);
    else if (event.key === "Home") this.#seek(0);
    else if (event.key === "End") this.#seek(this.#layout.total);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #seek(place) {
    const detail = Math.min(Math.max(0, place), this.#layout.total);
    this.dispatchEvent(new CustomEvent("seek", { detail }));
  }
}
