/** The rows under a finger: a number that is drawn carries its line, and the list rolls at its ends. */
import { byId } from "./dom.js";

const BEGINS_PX = 8;
const EDGE_PX = 48;
const STEP_PX = 9;

export class RowsTouch {
  #list = byId("lines");
  #lines;
  #lifted;
  #from = null;
  #at = null;

  /** @param {object} parts lines, lifted */
  constructor({ lines, lifted }) {
    this.#lines = lines;
    this.#lifted = lifted;
    this.#list.addEventListener("pointerdown", (event) => this.#touch(event));
    this.#list.addEventListener("pointermove", (event) => this.#move(event));
    this.#list.addEventListener("pointerup", (event) => this.#leave(event, true));
    this.#list.addEventListener("pointercancel", (event) => this.#leave(event, false));
    // The touch that ends a journey is no press on the number.
    this.#list.addEventListener("click", (event) => this.#carried(event), true);
  }

  #touch({ pointerType, pointerId, target, clientX, clientY }) {
    if (this.#at) return; // a second finger
    const lineId = pointerType === "touch" && target.closest(".line-grip") ? this.#lines.lineOf(target) : null;
    this.#from = lineId && { lineId, pointerId, x: clientX, y: clientY, moved: false };
  }

  #move({ pointerId, clientX, clientY }) {
    const from = this.#from;
    if (!from || from.pointerId !== pointerId) return;
    if (!from.moved && Math.hypot(clientX - from.x, clientY - from.y) < BEGINS_PX) return;
    if (!from.moved) {
      from.moved = true;
      this.#list.setPointerCapture(pointerId);
      this.#lifted.begin(from.lineId);
    }
    const rolls = this.#at !== null;
    this.#at = { x: clientX, y: clientY };
    if (!rolls) this.#roll();
  }

  /** Each frame: show the place, and roll while the finger is at an end of the list. */
  #roll() {
    if (!this.#at) return;
    const view = this.#list.getBoundingClientRect();
    const { x, y } = this.#at;
    if (y < view.top + EDGE_PX) this.#list.scrollBy({ top: -STEP_PX });
    if (y > view.bottom - EDGE_PX) this.#list.scrollBy({ top: STEP_PX });
    const inside = Math.min(Math.max(y, view.top + 1), view.bottom - 1);
    const row = document.elementFromPoint(x, inside)?.closest("#lines .line");
    if (row) this.#lifted.over(row, inside);
    requestAnimationFrame(() => this.#roll());
  }

  #leave({ pointerId }, lands) {
    if (this.#from?.pointerId !== pointerId) return;
    this.#at = null;
    if (!this.#from.moved) this.#from = null;
    else if (lands) this.#lifted.drop();
    else this.#lifted.end();
  }

  #carried(event) {
    if (!this.#from?.moved || !event.detail) return;
    this.#from = null;
    event.stopPropagation();
  }
}
