/** The card over the timeline: which line is under the pointer, who says it, and how it stands. */
import { byId, setHidden, setText } from "../core/dom.js";
import { formatLength } from "../core/format.js";
import { t, translateServer } from "../core/texts.js";
import { RATE_HZ, takeIssues } from "../document/document.js";

/** @import { Line, PageElement } from "../core/types" */

const STATES = {
  none: t`not generated yet`, queued: t`waiting`, generating: t`being generated`, stale: t`changed since`, failed: t`failed`,
};
const MOST_CHARS = 140;
const EDGE_PX = 8;

export class TimelineCard {
  #card = byId("timeline-card");
  /** @type {string | null} */
  #shown = null;

  /** @param {PageElement} timeline @param {(x: number) => Line | null} lineAt a place in the window */
  constructor(timeline, lineAt) {
    timeline.addEventListener("pointermove", ({ pointerType, buttons, clientX }) => {
      const line = pointerType === "touch" || buttons ? null : lineAt(clientX);
      this.#show(line, clientX, timeline);
    });
    for (const end of ["pointerleave", "pointerdown"]) timeline.addEventListener(end, () => this.#show(null));
  }

  /** @param {Line | null} line @param {number} [x] @param {PageElement} [timeline] */
  #show(line, x = 0, timeline = null) {
    const text = line ? (line.text || line.path || "") : "";
    setHidden(this.#card, text === "");
    if (!text) return;
    if (this.#shown !== line.line_id) this.#write(line, text);
    const box = timeline.getBoundingClientRect();
    const half = this.#card.offsetWidth / 2;
    const middle = Math.min(Math.max(x, half + EDGE_PX), window.innerWidth - half - EDGE_PX);
    Object.assign(this.#card.style, { left: `${middle - half}px`, bottom: `${window.innerHeight - box.top + EDGE_PX}px` });
  }

  /** @param {Line} line @param {string} text */
  #write(line, text) {
    const { speaker, state, samples, message, take } = line;
    const length = samples && line.kind !== "silence" ? formatLength(samples / RATE_HZ) : "";
    const doubts = take && state === "ready" ? takeIssues(take) : [];
    setText(byId("timeline-card-name"), speaker ?? (line.unspoken ? t`Not spoken` : t`Recording`));
    setText(byId("timeline-card-about"), [line.unspoken ? "" : STATES[state], length].filter(Boolean).join(", "));
    setText(byId("timeline-card-text"), text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS)}…` : text);
    setText(byId("timeline-card-why"), [state === "failed" ? translateServer(message) : "", ...doubts].filter(Boolean).join(" "));
  }
}
