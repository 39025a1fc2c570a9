/** Keeps the line being heard in view, unless the person is at another place of the dialog. */
import { byId, setHidden } from "./dom.js";

const SCROLLS = new Set(["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"]);

export class Following {
  #list = byId("lines");
  #button = byId("back-to-heard");
  #lines;
  #heard = null;
  #leftAt = -Infinity;
  #looking = false;

  /** @param {import("./lines.js").Lines} lines */
  constructor(lines) {
    /** How long after a scroll by hand the list stays where it was put. */
    this.rest_ms = 8000;
    this.#lines = lines;
    const leave = () => this.#leave();
    this.#list.addEventListener("wheel", leave, { passive: true });
    this.#list.addEventListener("touchmove", leave, { passive: true });
    // A press beside all rows is one on the scroll bar.
    this.#list.addEventListener("pointerdown", ({ target }) => target === this.#list && leave());
    this.#list.addEventListener("keydown", ({ key }) => SCROLLS.has(key) && leave());
    for (const name of ["scroll", "focusin", "focusout"]) this.#list.addEventListener(name, () => this.#look());
    this.#button.addEventListener("click", () => this.#goBack());
  }

  /** Whether the list may move by itself: nobody writes in it or has just moved it. */
  get free() {
    const writes = document.activeElement?.closest("#lines .line-text, #lines .line-seconds");
    return !writes && performance.now() - this.#leftAt > this.rest_ms;
  }

  /** What is heard was chosen by hand: it is where the person wants to be. */
  resume() {
    this.#leftAt = -Infinity;
  }

  /** @param {string | null} lineId the line being heard, null when none is */
  hear(lineId) {
    this.#heard = lineId;
    this.#look();
  }

  #leave() {
    this.#leftAt = performance.now();
    this.#lines.letGo();
    this.#look();
  }

  #goBack() {
    const lineId = this.#heard;
    this.resume();
    this.#lines.row(lineId)?.root.focus({ preventScroll: true });
    this.#lines.reveal(lineId);
    this.#look();
  }

  /** The way back is offered while what is heard is out of sight and the list stays. */
  #look() {
    if (this.#looking) return;
    this.#looking = true;
    requestAnimationFrame(() => {
      this.#looking = false;
      setHidden(this.#button, this.#heard === null || this.free || this.#lines.sees(this.#heard));
    });
  }
}
