/** Text editing in a row: a key changes only that row, and the edit is sent after a pause. */
import { bus } from "../core/bus.js";
import { byId } from "../core/dom.js";
import { looksLikeScript } from "../document/script_text.js";

export class TextEditor {
  #project;
  #lines;
  #selection;
  #commands;
  #lineImport;

  constructor({ project, lines, selection, commands, lineImport }) {
    this.#lineImport = lineImport;
    this.#project = project;
    this.#lines = lines;
    this.#selection = selection;
    this.#commands = commands;
    const list = byId("lines");
    list.addEventListener("beforeinput", (event) => this.#before(event));
    list.addEventListener("input", (event) => this.#input(event));
    const onKey = (event) => this.#key(event);
    list.addEventListener("focusin", (event) => {
      // Keys on a row outside of its text are handled elsewhere.
      if (isText(event.target) || isSeconds(event.target)) event.target.addEventListener("keydown", onKey);
      this.#entered(event);
    });
    list.addEventListener("focusout", ({ target }) => this.#left(target));
    list.addEventListener("change", (event) => this.#pause(event));
    bus.on("text.edit", ({ lineId, at }) => this.edit(lineId, at));
  }

  /** Put the caret into a line's text. @param {string} lineId @param {number} [at] default its end */
  edit(lineId, at = Infinity) {
    const row = this.#lines.row(lineId);
    if (!row) return;
    this.#selection.go(lineId);
    this.#lines.reveal(lineId, { calm: true });
    if (row.seconds) {
      row.seconds.focus();
      return row.seconds.select(); // what is typed takes the place of what is there
    }
    if (row.kind === "audio") return row.file.focus();
    row.text.focus({ preventScroll: true });
    const node = row.text.firstChild;
    if (node) getSelection().collapse(node, Math.min(at, node.length));
  }

  /** A digit on a pause begins its new length, which holds from this key on. @param {number} digit */
  typeSeconds(digit) {
    const { seconds } = this.#lines.row(this.#selection.current) ?? {};
    if (!seconds) return;
    seconds.focus();
    seconds.value = String(digit);
    this.#typeSeconds(seconds);
  }

  /** @param {import("../core/types").PageElement} field in which somebody types */
  #typeSeconds(field) {
    const lineId = this.#lines.lineOf(/** @type {any} */ (field));
    const seconds = secondsIn(field);
    if (seconds === null || seconds === this.#project.line(lineId)?.duration_s) return;
    this.#commands.set({ duration_s: seconds }, { lineIds: [lineId], group: `pause:${lineId}` });
  }

  #entered({ target }) {
    const lineId = this.#lines.lineOf(target);
    if (!lineId || target.classList.contains("line")) return;
    if (lineId !== this.#selection.current || this.#selection.ids.length > 1) this.#selection.go(lineId);
  }

  #left(target) {
    if (isText(target)) this.#lines.row(this.#lines.lineOf(target))?.settle();
  }

  /** A line is one paragraph: pasted line breaks become spaces, and pasted script becomes lines. */
  #before(event) {
    if (!isText(event.target)) return;
    if (event.inputType === "insertParagraph" || event.inputType === "insertLineBreak") {
      event.preventDefault();
    }
    const pasted = event.inputType === "insertFromPaste" || event.inputType === "insertFromDrop";
    const text = pasted ? (event.dataTransfer?.getData("text/plain") ?? event.data) : null;
    const { end } = this.#lineImport;
    if (!text?.includes("\n") && !(text && end)) return;
    event.preventDefault();
    if (end || looksLikeScript(text)) return this.#lineImport.text(text, end ?? this.#lines.lineOf(event.target));
    document.execCommand("insertText", false, text.replace(/\s*\n\s*/g, " "));
  }

  #input({ target }) {
    if (isSeconds(target)) return this.#typeSeconds(target);
    if (!isText(target)) return undefined;
    const lineId = this.#lines.lineOf(target);
    const text = target.textContent;
    // Browsers leave a line break after the last deleted character, so that the row isn't empty.
    if (!text) target.replaceChildren();
    if (text === this.#project.line(lineId)?.text) return undefined;
    return this.#project.edit([{ op: "set", line_ids: [lineId], fields: { text } }], {
      group: `text:${lineId}`,
    });
  }

  #key(event) {
    if (event.isComposing) return;
    if (isSeconds(event.target)) return this.#pauseKey(event);
    if (!isText(event.target) || event.ctrlKey || event.metaKey || event.altKey) return;
    const lineId = this.#lines.lineOf(event.target);
    const act = this.#keyFor(event, lineId);
    if (!act) return;
    event.preventDefault();
    event.stopPropagation();
    act();
  }

  #keyFor(event, lineId) {
    const [from, to] = selectedRange(event.target);
    const length = event.target.textContent.length;
    if (event.key === "Enter" && event.shiftKey) return () => this.#commands.add();
    const isUnspoken = this.#lines.row(lineId).isUnspoken;
    if (event.key === "Enter" && (to === length || isUnspoken)) return () => this.#commands.add();
    if (event.key === "Enter") return () => this.#commands.split(lineId, keptPlace(event.target.textContent, this.#project.line(lineId).text, to));
    if (event.key === "Escape") return () => this.#selection.focus();
    const collapsed = from === to;
    if (event.key === "Backspace" && collapsed && to === 0) return this.#backspace(lineId, length);
    if (event.key === "ArrowUp" && collapsed && to === 0) return () => this.#step(-1, Infinity);
    if (event.key === "ArrowDown" && collapsed && to === length) return () => this.#step(1, 0);
    return null;
  }

  #backspace(lineId, length) {
    if (length > 0) return () => this.#commands.joinBack(lineId);
    return () => {
      const before = this.#selection.neighbour(-1);
      this.#commands.delete([lineId]);
      if (before && before !== lineId) this.edit(before);
    };
  }

  #step(by, at) {
    const next = this.#selection.neighbour(by);
    if (next && next !== this.#selection.current) this.edit(next, at);
  }

  #pauseKey(event) {
    if (event.key !== "Enter" && event.key !== "Escape") return;
    event.preventDefault();
    event.stopPropagation();
    this.#selection.focus();
  }

  #pause({ target }) {
    if (target.classList.contains("line-what")) {
      return this.#commands.set({ unspoken: target.value }, { lineIds: [this.#lines.lineOf(target)] });
    }
    if (!isSeconds(target)) return;
    const lineId = this.#lines.lineOf(target);
    const known = this.#project.line(lineId)?.duration_s;
    if (known === undefined) return; // it was deleted with the field focused
    const seconds = secondsIn(target);
    if (seconds === null) return void (target.value = String(known));
    if (seconds !== known) this.#commands.set({ duration_s: seconds }, { lineIds: [lineId] });
  }
}

function isText(target) {
  return target instanceof Element && target.classList.contains("line-text");
}

function isSeconds(target) {
  return target instanceof Element && target.classList.contains("line-seconds");
}

const MOST_SECONDS = 300;

/** @returns {number | null} the seconds of a pause that a field holds, null where it holds none */
function secondsIn({ value }) {
  const seconds = Number(value);
  return value !== "" && seconds >= 0 && seconds <= MOST_SECONDS ? seconds : null;
}

/** @param {Element} element @returns {[number, number]} start and end of the selected text in it */
export function selectedRange(element) {
  const selection = getSelection();
  if (!selection.rangeCount) return [0, 0];
  const range = selection.getRangeAt(0);
  const start = document.createRange();
  start.selectNodeContents(element);
  start.setEnd(range.startContainer, range.startOffset);
  return [start.toString().length, start.toString().length + range.toString().length];
}

/** Map an offset in the typed text to the stored text, in which runs of spaces are one. @param {string} typed @param {string} text @param {number} at */
export function keptPlace(typed, text, at) {
  if (text === typed) return at;
  let letters = letterCount(typed.slice(0, at));
  let place = 0;
  while (place < text.length && letters > 0) letters -= letterCount(text[place++]);
  return place;
}

function letterCount(text) {
  return text.replace(/\s/g, "").length;
}
