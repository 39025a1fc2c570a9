/** Clipboard and import of lines: copied, cut and pasted as script text, or read from files. */
import * as api from "../core/api.js";
import { byId, isLaidOut } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { announce, noticeImportedFile, showDone, showError } from "../core/notices.js";
import { serializeLines } from "../document/script_text.js";

/** @import { Parts, ReadLines } from "../core/types" */

const CLIPBOARD = "The clipboard";

/** Lines from a file or the clipboard: parsed by the studio, inserted as one step. */
export class LineImport {
  #project;
  #selection;
  #commands;
  #last = Promise.resolve();

  /** @param {Pick<Parts, "project" | "selection" | "commands">} parts */
  constructor({ project, selection, commands }) {
    this.#project = project;
    this.#selection = selection;
    this.#commands = commands;
  }

  /** The line after which something is inserted: the last selected one, else the last of all. @returns {string | null} */
  get place() {
    const { current, ids } = this.#selection;
    return ids.at(-1) ?? current ?? this.#project.view.order.at(-1) ?? null;
  }

  /** Insert pasted text; what is pasted twice is inserted twice, in order. @param {string} text @param {string | null} [after] */
  text(text, after) {
    const bring = async () => {
      const lines = await this.#lines([[CLIPBOARD, () => api.readLines(new Blob([text]))]], "pasted", after);
      if (lines) announce(`${formatCount(lines, "line")} pasted.`);
    };
    this.#last = this.#last.then(bring);
    return this.#last;
  }

  /** Insert the lines of files. @param {File[]} files */
  async files(files) {
    /** @type {Array<[string, () => Promise<ReadLines>]>} */
    const reads = files.map((file) => [file.name, () => api.readLines(file, file.name)]);
    const lines = await this.#lines(reads, "inserted");
    const undo = { label: "Undo", press: () => this.#commands.travel("undo") };
    if (lines) showDone(`${formatCount(lines, "line")} inserted.`, undo);
  }

  /**
   * @param {Array<[string, () => Promise<ReadLines>]>} reads each by its name
   * @returns {Promise<number>} how many lines were inserted
   */
  async #lines(reads, what, after = this.place) {
    const { id, rev } = this.#project;
    const lines = [];
    for (const [name, read] of reads) {
      try {
        const { lines: some, notices } = await read();
        lines.push(...some);
        noticeImportedFile({ name, notices });
      } catch (error) {
        showError(`${name} can't be ${what}`, error);
      }
    }
    return lines.length && (await this.#put(lines, { id, rev, after })) ? lines.length : 0;
  }

  /** Another project may be open by now, and the line before may be deleted. @returns {Promise<boolean>} */
  async #put(lines, { id, rev, after }) {
    const { view } = this.#project;
    const isOpen = id === this.#project.id;
    const isThere = !isOpen || after === null || view.lines.has(after);
    const op = { op: "insert", after: isThere ? after : (view.order.at(-1) ?? null), lines };
    try {
      await this.#project.editIn(id, [op], rev);
    } catch (error) {
      showError("The lines can't be brought in", error);
      return false;
    }
    if (isOpen) this.#mark(lines.map(({ line_id: lineId }) => lineId));
    return true;
  }

  #mark(lineIds) {
    this.#selection.set(lineIds, lineIds[0]);
    this.#selection.focus();
  }
}

/** Whether the browser's own clipboard is meant; on a focused button it has no use. */
const OTHERS = 'input, textarea, select, [contenteditable], [role="menu"]';

/** Copy, cut and paste of selected lines, as script text. */
export class Clipboard {
  #parts;

  /** @param {Pick<Parts, "project" | "selection" | "commands" | "lineImport">} parts */
  constructor(parts) {
    this.#parts = parts;
    document.addEventListener("copy", (event) => this.#copy(event, "copied"));
    document.addEventListener("cut", (event) => this.#copy(event, "cut") && parts.commands.delete());
    document.addEventListener("paste", (event) => this.#paste(event));
    // Safari asks first: if no text is selected, it would ignore the keys without this.
    for (const name of ["beforecopy", "beforecut"]) {
      document.addEventListener(name, (event) => this.#copies(event) && event.preventDefault());
    }
    document.addEventListener("beforepaste", (event) => isFree(event) && event.preventDefault());
  }

  /** Whether selected lines are meant. */
  #copies(event) {
    return isFree(event) && this.#parts.selection.ids.length > 0 && getSelection().isCollapsed;
  }

  /** @returns {boolean} whether lines are on the clipboard now */
  #copy(event, done) {
    const { project, selection } = this.#parts;
    const { ids } = selection;
    if (!this.#copies(event)) return false;
    event.preventDefault();
    event.clipboardData.setData("text/plain", serializeLines(ids.map((lineId) => project.line(lineId))));
    announce(`${formatCount(ids.length, "line")} ${done}.`);
    return true;
  }

  #paste(event) {
    const text = event.clipboardData?.getData("text/plain");
    if (!isFree(event) || !text?.trim()) return;
    event.preventDefault();
    this.#parts.lineImport.text(text);
  }
}

function isFree(event) {
  const isShown = isLaidOut(byId("lines-view"));
  if (event.defaultPrevented || document.querySelector("dialog[open]") || !isShown) return false;
  return !document.activeElement?.closest(OTHERS);
}
