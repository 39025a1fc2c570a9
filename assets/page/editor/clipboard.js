/** Clipboard and import of lines: copied, cut and pasted as script text, or read from files. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, isLaidOut } from "../core/dom.js";
import { fold, formatCount } from "../core/format.js";
import { announce, noticeImportedFile, offerReading, showDone, showError } from "../core/notices.js";
import { t } from "../core/texts.js";
import { namingOps } from "../document/naming.js";
import { serializeLines } from "../document/script_text.js";
import { chooseColumns, recallColumns } from "./columns.js";

/** @import { NewLine, Parts, ReadingChoice, ReadLines } from "../core/types" */

const CLIPBOARD = t`The clipboard`;

/** @typedef {{name: string, file?: string, read: (choice?: ReadingChoice) => Promise<ReadLines>}} Source text or a file, read by the studio */

/** Lines from a file or the clipboard: parsed by the studio, inserted as one step. */
export class LineImport {
  #project;
  #selection;
  #commands;
  #show;
  /** @type {Promise<unknown>} */
  #last = Promise.resolve();
  /** The last line that came, until somebody goes elsewhere: what is pasted next follows it. @type {string | null} */
  #end = null;

  /** @param {Pick<Parts, "project" | "selection" | "commands" | "show">} parts */
  constructor({ project, selection, commands, show }) {
    this.#project = project;
    this.#selection = selection;
    this.#commands = commands;
    this.#show = show;
    bus.on("selection.changed", () => (this.#end = null));
  }

  /** Where the caret still stands as a paste has left it, the end of what was pasted. @returns {string | null} */
  get end() {
    const isMoved = document.activeElement?.matches(".line-text") && getSelection().focusOffset > 0;
    return !isMoved && this.#project.line(this.#end) ? this.#end : null;
  }

  /** The line after which something is inserted: the last selected one, else the last of all. @returns {string | null} */
  get place() {
    const { current, ids } = this.#selection;
    return this.end ?? ids.at(-1) ?? current ?? this.#project.view.order.at(-1) ?? null;
  }

  /**
   * Insert pasted text; what is pasted twice is inserted twice, in order. @param {string} text @param {string | null} [after]
   * @returns {Promise<number>} how many lines came
   */
  text(text, after) {
    const source = sourceOf(new Blob([text]), CLIPBOARD);
    const bring = async () => {
      const lines = await this.#lines([source], after);
      if (lines) announce(t`${formatCount(lines, "line")} pasted.`);
      return lines;
    };
    const brought = this.#last.then(bring);
    this.#last = brought;
    return brought;
  }

  /** Insert the lines of files. @param {File[]} files @returns {Promise<number>} how many came */
  async files(files) {
    const lines = await this.#lines(files.map((file) => sourceOf(file, file.name)));
    const undo = { label: t`Undo`, press: () => this.#commands.travel("undo") };
    if (lines) showDone(t`${formatCount(lines, "line")} inserted.`, undo);
    return lines;
  }

  /** The open project was made of a file: offer to read it in another way. @param {File} file @param {Partial<ReadLines>} about */
  offerReading(file, about) {
    const { id, rev, view } = this.#project;
    const [sources, place] = [[sourceOf(file, file.name)], { id, rev, after: null, put: [...view.order] }];
    const columns = recallColumns(about.columns);
    if (columns) this.#readAgain(sources, { columns }, place);
    else this.#offer(sources, about, place);
  }

  /**
   * @param {Source[]} sources
   * @returns {Promise<number>} how many lines were inserted
   */
  async #lines(sources, after = this.place) {
    const { id, rev, view } = this.#project;
    const isNew = !view.order.length;
    const lines = [];
    let [unspoken, quoted, timed, title, columns] = [0, 0, false, null, null];
    for (const { name, read } of sources) {
      try {
        const { lines: some, notices, ...about } = await read();
        lines.push(...some);
        unspoken += about.unspoken ?? 0;
        quoted += about.quoted ?? 0;
        timed ||= about.timed ?? false;
        if (sources.length === 1) columns = about.columns ?? null;
        title ??= about.title ?? null;
        this.#tell(id, name, { lines: some, notices });
      } catch (error) {
        showError(t`Couldn’t import ${name}`, error);
      }
    }
    if (!lines.length) return 0;
    const naming = isNew ? namingOps(view.name, { title, lines, file: sources[0].file }) : [];
    if (!(await this.#put(lines, { id, rev, after, naming }))) return 0;
    this.#offer(sources, { unspoken, quoted, timed, columns }, { id, rev, after, put: lines.map(({ line_id: lineId }) => lineId) });
    return lines.length;
  }

  /** @param {string} id of the project they came to @param {string} name of what was read @param {Pick<ReadLines, "lines" | "notices">} read */
  #tell(id, name, { lines, notices }) {
    noticeImportedFile({ name, notices }, (rows) => this.#lead(id, rows.map((row) => lines[row].line_id)));
  }

  /** Select the lines of these that are still in the open project. @param {string} id of the project they came to */
  #lead(id, lineIds) {
    if (id === this.#project.id) this.select(lineIds.filter((lineId) => this.#project.line(lineId)));
  }

  /** Select lines, and lead to the first. @param {string[]} lineIds */
  select(lineIds) {
    this.#show("lines");
    this.#selection.set(lineIds, lineIds[0] ?? null);
    this.#selection.focus();
  }

  /** @param {Source[]} sources */
  #offer(sources, about, place) {
    offerReading(about, async (asked) => {
      const choice = await chooseColumns(asked);
      if (choice) await this.#readAgain(sources, choice, place);
      else this.#offer(sources, about, place);
    });
  }

  /** Read the sources again in another way, in place of the lines that were put, as one step. */
  async #readAgain(sources, choice, { id, rev, after, put }) {
    const isOpen = id === this.#project.id;
    const lineIds = put.filter((lineId) => !isOpen || this.#project.view.lines.has(lineId));
    try {
      const read = await Promise.all(sources.map((source) => source.read(choice)));
      const lines = read.flatMap((one) => one.lines);
      const gone = lineIds.length ? [{ op: "delete", line_ids: lineIds }] : [];
      if (!(await this.#put(lines, { id, rev, after, gone }))) return;
      sources.forEach(({ name }, at) => this.#tell(id, name, read[at]));
      const { columns } = read[0];
      if (choice.columns && columns) this.#offer(sources, { columns }, { id, rev: this.#project.rev, after, put: lines.map(({ line_id: lineId }) => lineId) });
    } catch (error) {
      showError(t`Couldn’t read it again`, error);
    }
  }

  /** Another project may be open by now, and the line before may be deleted. @returns {Promise<boolean>} */
  async #put(lines, { id, rev, after, gone = [], naming = [] }) {
    const { view } = this.#project;
    const isOpen = id === this.#project.id;
    const isThere = !isOpen || after === null || view.lines.has(after);
    const op = { op: "insert", after: isThere ? after : (view.order.at(-1) ?? null), lines: this.#named(lines) };
    // A first line that is still empty makes room.
    const empty = isOpen && after !== null && isThere && !gone.length && view.lines.get(after).text === "";
    const room = empty ? [{ op: "delete", line_ids: [after] }] : gone;
    try {
      await this.#project.editIn(id, [op, ...room, ...naming], rev);
    } catch (error) {
      showError(t`Couldn’t insert the lines`, error);
      return false;
    }
    if (isOpen) this.#enter(lines.map(({ line_id: lineId }) => lineId));
    return true;
  }

  /** Speakers as they are written in the project already. @param {NewLine[]} lines */
  #named(lines) {
    const known = new Map(this.#project.view.speakers.map(({ name }) => [fold(name), name]));
    return lines.map((line) => (line.speaker ? { ...line, speaker: known.get(fold(line.speaker)) ?? line.speaker } : line));
  }

  /** Nothing is selected, and the caret stands in the first line that is said; on a phone that would open its keyboard. */
  #enter(lineIds) {
    const lines = lineIds.map((id) => this.#project.line(id));
    const { kind, unspoken, line_id: lineId } = lines.find((line) => line.kind === "speech") ?? lines[0];
    const isText = (kind === "speech" || unspoken) && !matchMedia("(pointer: coarse)").matches;
    if (isText) bus.emit("text.edit", { lineId, at: 0 });
    this.#selection.set([], lineId);
    if (!isText) this.#selection.focus();
    this.#end = lineIds.at(-1);
  }
}

/** @param {Blob} body @param {string} name @returns {Source} read by the columns chosen last for such a table, unless there is another choice */
function sourceOf(body, name) {
  const file = body instanceof File ? name : undefined;
  const read = (choice) => api.readLines(body, file ?? "", choice);
  const once = async () => {
    const plain = await read();
    const columns = recallColumns(plain.columns);
    return columns ? read({ columns }) : plain;
  };
  return { name, file, read: (choice) => (choice ? read(choice) : once()) };
}

/** Whether the browser's own clipboard is meant; on a focused button it has no use. */
const OTHERS = 'input, textarea, select, [contenteditable], [role="menu"]';

/** Copy, cut and paste of selected lines, as script text. */
export class Clipboard {
  #parts;

  /** @param {Pick<Parts, "project" | "selection" | "commands" | "lineImport">} parts */
  constructor(parts) {
    this.#parts = parts;
    document.addEventListener("copy", (event) => this.#copy(event, (lines) => t`${lines} copied.`));
    document.addEventListener("cut", (event) => this.#copy(event, (lines) => t`${lines} cut.`) && parts.commands.delete());
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
    announce(done(formatCount(ids.length, "line")));
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
