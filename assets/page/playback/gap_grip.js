/** The spaces between lines on the timeline, gaps and pauses, as grips to drag or to step by keys. */
import { bus } from "../core/bus.js";
import { byId, setHidden, setText } from "../core/dom.js";
import { formatDecimal } from "../core/format.js";
import { announce } from "../core/notices.js";
import { t } from "../core/texts.js";
import { MAX_PAUSE_S, RATE_HZ } from "../document/document.js";
import { MOST_GAP_S, ownStart, spaceBefore } from "./gaps.js";

const LEAST_PX_PER_S = 12; // below, a space is too small to be meant
const REACH_PX = 4;
const TOUCH_REACH_PX = 12;
const MOVED_PX = 3;
const STEP_S = 0.05;
const VALUE_PX = 90;

/** @typedef {NonNullable<ReturnType<typeof spaceBefore>>} Space */

/** Emits "timeline.space". */
export class GapGrip {
  #root = byId("timeline");
  #grip = byId("gap-grip");
  #value = byId("gap-value");
  #timeline;
  /** @type {{space: Space, x: number, seconds: number, moved: boolean} | null} */
  #held = null;

  /** @param {import("./timeline.js").Timeline} timeline */
  constructor(timeline) {
    this.#timeline = timeline;
    this.#root.addEventListener("pointermove", (event) => this.#move(event));
    this.#root.addEventListener("pointerleave", () => this.#held || this.#show(null));
    this.#root.addEventListener("pointerup", (event) => this.#drop(event));
    this.#root.addEventListener("pointercancel", () => this.#letGo());
  }

  /** @param {PointerEvent} event @returns {boolean} whether a space is held now, so that nothing else is pressed */
  press(event) {
    const space = this.#find(event);
    if (!space) return false;
    this.#root.setPointerCapture(event.pointerId);
    this.#held = { space, x: event.clientX, seconds: secondsOf(space), moved: false };
    this.#show(space);
    return true;
  }

  /** Escape leaves the space as it was. @returns {boolean} whether one was held */
  letGo() {
    const held = this.#held !== null;
    this.#letGo();
    return held;
  }

  /** Make the space before the line at a place longer or shorter. @param {number} place in samples @param {number} by -1 or 1 */
  step(place, by) {
    const { playlist } = this.#timeline;
    const at = playlist.at(place);
    const space = spaceBefore(playlist, at) ?? this.#following(at);
    if (!space) return announce(t`There is no gap before the first line.`);
    const seconds = clamp(space, Math.round((secondsOf(space) + by * STEP_S) / STEP_S) * STEP_S);
    bus.emit("timeline.space", { space, seconds, group: `space-${space.line.line_id}` });
    return undefined;
  }

  #following(at) {
    const { playlist } = this.#timeline;
    const { lines, lengths } = playlist;
    const next = lines.findIndex(({ kind }, index) => index > at && kind !== "silence" && lengths[index]);
    return spaceBefore(playlist, next);
  }

  /** @param {PointerEvent} event @returns {Space | null} the space under a pointer */
  #find({ clientX, pointerType }) {
    const { playlist, px_per_sample: scale } = this.#timeline;
    if (scale * RATE_HZ < LEAST_PX_PER_S) return null;
    const place = this.#timeline.placeAt(clientX);
    const reach = (pointerType === "touch" ? TOUCH_REACH_PX : REACH_PX) / scale;
    const at = playlist.at(place);
    const near = Math.min(reach, playlist.lengths[at] / 4);
    const holds = (space) => space && place >= space.from - near && place <= space.to + near;
    return [this.#following(at), spaceBefore(playlist, at)].find(holds) ?? null;
  }

  #move(event) {
    if (!this.#held) return this.#show(event.buttons ? null : this.#find(event));
    const { space, x } = this.#held;
    const dragged = event.clientX - x;
    this.#held.moved ||= Math.abs(dragged) >= MOVED_PX;
    if (!this.#held.moved) return undefined;
    const { px_per_sample: scale } = this.#timeline;
    this.#held.seconds = clamp(space, secondsOf(space) + dragged / scale / RATE_HZ);
    return this.#show(space, this.#held.seconds);
  }

  /** A press that didn't move is a press on the timeline. */
  #drop(event) {
    if (!this.#held) return;
    const { space, seconds, moved } = this.#held;
    this.#letGo();
    if (moved) bus.emit("timeline.space", { space, seconds });
    else bus.emit("timeline.seek", this.#timeline.placeAt(event.clientX));
  }

  #letGo() {
    this.#held = null;
    this.#show(null);
  }

  /** @param {Space | null} space @param {number} [seconds] while it is dragged */
  #show(space, seconds) {
    setHidden(this.#grip, !space);
    this.#root.classList.toggle("over-space", Boolean(space));
    if (!space) return;
    const { px_per_sample: scale } = this.#timeline;
    const left = this.#timeline.xOf(space.from);
    const shown = seconds ?? secondsOf(space);
    this.#grip.style.transform = `translateX(${left}px)`;
    this.#grip.style.width = `${Math.max(2, shown * RATE_HZ * scale)}px`;
    this.#grip.classList.toggle("at-end", left > this.#root.clientWidth - VALUE_PX);
    setText(this.#value, `${space.pause ? t`Pause` : t`Gap`} ${formatSpace(shown)}`);
  }
}

/** @param {number} seconds @returns {string} such as "0.35 s" */
export function formatSpace(seconds) {
  return `${formatDecimal(seconds, 2)} s`;
}

/** @param {Space} space */
function secondsOf({ from, to }) {
  return (to - from) / RATE_HZ;
}

function clamp({ line, pause }, seconds) {
  const whole = Math.round(seconds * 100) / 100;
  return Math.min(Math.max(0, whole), pause || ownStart(line) !== null ? MAX_PAUSE_S : MOST_GAP_S);
}
