/** Words of a ready line, marked in its row: the voice says them again, and the rest of the take stays. */
import { bus } from "../core/bus.js";
import { byId, setHidden, setText } from "../core/dom.js";
import { announce, showDone, showError } from "../core/notices.js";
import { t } from "../core/texts.js";
import { keptPlace, selectedRange } from "./text_editor.js";

/** @import { Parts } from "../core/types" */

const LABEL = t`Say this again`;

export class LinePatches {
  #button = byId("line-patch");
  #parts;
  /** The marked part of a row's text, as it is typed. @type {{lineId: string, range: [number, number]} | null} */
  #marked = null;
  /** Stops what is being said. @type {AbortController | null} */
  #running = null;

  /** @param {Pick<Parts, "project" | "selection" | "lines" | "playback">} parts */
  constructor(parts) {
    this.#parts = parts;
    document.addEventListener("selectionchange", () => this.#notice());
    this.#button.addEventListener("click", () => this.press());
    bus.on("project.changed", () => this.#show());
    bus.on("selection.changed", () => this.#show());
    bus.on("project.opened", () => this.#running?.abort());
  }

  /** Say the marked words again, or stop that. */
  press() {
    if (this.#running) return this.#running.abort();
    this.#notice();
    const line = this.#line;
    if (!line || this.#marked?.lineId !== line.line_id) return announce(t`Select words in the line’s text first.`);
    if (line.locked) return announce(t`The line is locked.`);
    if (line.state !== "ready") return announce(t`This line’s text has changed since its audio was generated. Generate it first.`);
    return this.#say(line);
  }

  async #say(line) {
    const { project, lines, playback } = this.#parts;
    const { lineId, range } = this.#marked;
    const typed = lines.row(lineId).text.textContent;
    const [start, end] = range.map((at) => keptPlace(typed, line.text, at));
    const running = (this.#running = new AbortController());
    this.#show();
    try {
      const isNew = await project.sayAgain(lineId, { start, end }, running.signal);
      if (isNew) showDone(t`Words regenerated. The rest of the take is unchanged.`);
      if (isNew) await playback.playLine(lineId);
    } catch (error) {
      if (error.name === "AbortError") announce(t`Stopped. The line is unchanged.`);
      else showError(t`Couldn’t regenerate these words`, error);
    } finally {
      if (this.#running === running) this.#running = null;
      this.#show();
    }
  }

  get #line() {
    const { project, selection } = this.#parts;
    const line = selection.ids.length === 1 ? project.line(selection.current) : null;
    return line?.kind === "speech" ? line : null;
  }

  /** Remember what is marked in a row, as a press on the button removes the selection. */
  #notice() {
    const { anchorNode, focusNode } = getSelection();
    const at = anchorNode instanceof Element ? anchorNode : anchorNode?.parentElement;
    const text = at?.closest(".line-text");
    if (!text?.contains(focusNode)) return;
    this.#marked = { lineId: this.#parts.lines.lineOf(text), range: selectedRange(text) };
    this.#show();
  }

  #show() {
    const line = this.#line;
    setHidden(this.#button, !this.#running && (line?.state !== "ready" || Boolean(line.locked)));
    setText(this.#button, this.#running ? t`Stop` : LABEL);
    this.#button.setAttribute("aria-busy", String(Boolean(this.#running)));
  }
}
