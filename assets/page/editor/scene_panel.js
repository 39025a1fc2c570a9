/** The scene at a glance, in the place of a line's panel while no line is chosen. */
import { bus } from "../core/bus.js";
import { afterPaint, byId, fromTemplate, setHidden, setText } from "../core/dom.js";
import { formatClock, formatCount } from "../core/format.js";
import { t, translateServer } from "../core/texts.js";
import { RATE_HZ } from "../document/document.js";
import { recordingTitle } from "./line_list.js";

/** @import { Parts } from "../core/types" */

const MOST_CHECKS = 12;

export class ScenePanel {
  #parts;
  #shown = "";

  /** @param {Pick<Parts, "project" | "player" | "hints" | "badges" | "selection">} parts */
  constructor(parts) {
    this.#parts = parts;
    for (const name of /** @type {const} */ (["project.changed", "checks.changed", "selection.changed"])) {
      bus.on(name, this.#soon);
    }
  }

  /** Only while it is in sight: a fast voice causes hundreds of changes a second. */
  #soon = afterPaint(() => this.#parts.selection.ids.length || this.#show());

  #show() {
    const { project, player } = this.#parts;
    const spoken = project.lines.filter(({ kind }) => kind !== "silence");
    const { total, exact } = player.playlist;
    const ready = spoken.filter(({ state }) => state === "ready").length;
    const failed = spoken.filter(({ state }) => state === "failed").length;
    setHidden(byId("scene-facts"), spoken.length === 0);
    setText(byId("scene-lines"), String(spoken.length));
    setText(byId("scene-speakers"), String(project.view.speakers.length));
    setText(byId("scene-length"), `${exact ? "" : "≈ "}${formatClock(total / RATE_HZ)}`);
    setText(byId("scene-made"), t`${ready} of ${spoken.length}${failed ? t`, ${failed} failed` : ""}`);
    const { unfollowed } = this.#parts.hints;
    setHidden(byId("scene-unfollowed"), unfollowed === 0);
    setText(byId("scene-unfollowed"), t`${formatCount(unfollowed, "direction")} can’t be followed by this voice engine.`);
    this.#showChecks();
  }

  #showChecks() {
    const { project, badges } = this.#parts;
    const ids = badges.toCheck.slice(0, MOST_CHECKS);
    const items = ids.map((lineId) => ({ lineId, text: titleOf(project.line(lineId)), why: this.#why(lineId) }));
    const shown = JSON.stringify(items);
    if (shown === this.#shown) return;
    this.#shown = shown;
    setHidden(byId("scene-check-part"), items.length === 0);
    byId("scene-check").replaceChildren(...items.map((item) => this.#item(item)));
  }

  #why(lineId) {
    const { project, badges } = this.#parts;
    const { state, message } = project.line(lineId);
    return (state === "failed" && translateServer(message)) || badges.messagesOf(lineId).join(" ");
  }

  #item({ lineId, text, why }) {
    const row = fromTemplate("scene-check-template");
    setText(row.querySelector(".scene-check-text"), text || t`No text`);
    setText(row.querySelector(".scene-check-why"), why);
    row.querySelector("button").addEventListener("click", () => {
      this.#parts.selection.go(lineId);
      this.#parts.selection.focus();
    });
    return row;
  }
}

/** @param {import("../core/types").Line} line */
function titleOf(line) {
  return line.kind === "audio" ? recordingTitle(line) : line.text;
}
