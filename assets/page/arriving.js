/** Lines from elsewhere, a file or the clipboard: read by the studio, brought in as one step. */
import { count } from "./format.js";
import { announce, done, refused } from "./notices.js";
import * as api from "./project_api.js";
import { tellBrought } from "./told.js";

const CLIPBOARD = "The clipboard";

export class Arriving {
  #project;
  #selection;
  #acts;
  #last = Promise.resolve();

  /** @param {object} parts project, selection, acts */
  constructor({ project, selection, acts }) {
    this.#project = project;
    this.#selection = selection;
    this.#acts = acts;
  }

  /** After which line something comes in: the marked ones, else the last. @returns {string | null} */
  get place() {
    const { current, ids } = this.#selection;
    return ids.at(-1) ?? current ?? this.#project.view.order.at(-1) ?? null;
  }

  /** Bring in what was copied; what is pasted twice comes in twice, in order. @param {string} text @param {string | null} [after] */
  text(text, after) {
    const bring = async () => {
      const lines = await this.#lines([[CLIPBOARD, () => api.readLines(new Blob([text]))]], "pasted", after);
      if (lines) announce(`${count(lines, "line")} pasted.`);
    };
    this.#last = this.#last.then(bring);
    return this.#last;
  }

  /** Bring in the lines of files. @param {File[]} files */
  async files(files) {
    const reads = files.map((file) => [file.name, () => api.readLines(file, file.name)]);
    const lines = await this.#lines(reads, "inserted");
    const undo = { label: "Undo", press: () => this.#acts.travel("undo") };
    if (lines) done(`${count(lines, "line")} inserted.`, undo);
  }

  /**
   * @param {Array<[string, () => Promise<object>]>} reads each by its name
   * @returns {Promise<number>} how many lines came in
   */
  async #lines(reads, what, after = this.place) {
    const { id, rev } = this.#project;
    const lines = [];
    for (const [name, read] of reads) {
      try {
        const { lines: some, notices } = await read();
        lines.push(...some);
        tellBrought({ name, notices });
      } catch (error) {
        refused(`${name} can't be ${what}`, error);
      }
    }
    return lines.length && (await this.#put(lines, { id, rev, after })) ? lines.length : 0;
  }

  /** Another project may be open by now, and others may have deleted the line before. @returns {Promise<boolean>} */
  async #put(lines, { id, rev, after }) {
    const { view } = this.#project;
    const isOpen = id === this.#project.id;
    const isThere = !isOpen || after === null || view.lines.has(after);
    const op = { op: "insert", after: isThere ? after : (view.order.at(-1) ?? null), lines };
    try {
      await this.#project.editIn(id, [op], rev);
    } catch (error) {
      refused("The lines can't be brought in", error);
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
