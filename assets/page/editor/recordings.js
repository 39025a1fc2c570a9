/** Audio lines: choose a recording, drop or add one; it is rendered as soon as it is uploaded. */
import * as api from "../core/api.js";
import { byId } from "../core/dom.js";
import { announce, showDone, showError, showNotice } from "../core/notices.js";
import { t } from "../core/texts.js";
import { newId } from "../document/document.js";

/** @import { Op, Parts } from "../core/types" */

const SUFFIX = /\.(wav|flac|mp3|m4a|aac|ogg|oga|opus|webm|aiff?)$/i;

/** Whether a file is audio, judged by its name and type. @param {{name: string, type: string}} file */
export function isSoundFile({ name, type }) {
  return type.startsWith("audio/") || SUFFIX.test(name);
}

export class Recordings {
  #field = byId("recording-file");
  #project;
  #selection;
  #lineId = null;

  /** @param {Pick<Parts, "project" | "selection">} parts */
  constructor({ project, selection }) {
    this.#project = project;
    this.#selection = selection;
    byId("add-recording").addEventListener("click", () => this.choose(null));
    byId("recording-choose").addEventListener("click", () => this.choose(selection.current));
    this.#field.addEventListener("change", () => {
      const [file] = this.#field.files;
      this.#field.value = ""; // so that the same file can be chosen again
      if (file) this.bringAll([file], this.#lineId);
    });
  }

  /** Open the file chooser. @param {string | null} lineId of the line that plays it; null for a new one */
  choose(lineId) {
    this.#lineId = lineId;
    this.#field.click();
  }

  /** Upload files to the open project, one after the other; if a line is given, it plays the first one. */
  async bringAll(files, lineId, after = this.#selection.current) {
    showNotice("refused", {}); // a new try
    const { id, rev, view } = this.#project;
    let at = after ?? view.order.at(-1) ?? null;
    for (const [number, file] of files.entries()) {
      at = (await this.#bring({ id, rev, view }, file, number === 0 ? lineId : null, at)) ?? at;
    }
  }

  /**
   * Upload a file, and have a line play it.
   * @param {Pick<import("../document/project.js").Project, "id" | "rev" | "view">} to the project as it was open
   * @param {File} file @param {string | null} lineId an audio line, or null for a new one
   * @param {string | null} after the line before a new one
   * @returns {Promise<string | undefined>} the line that plays it
   */
  async #bring({ id, rev, view }, file, lineId, after) {
    announce(t`Importing ${file.name}…`);
    try {
      const { path } = await api.addAudio(id, file);
      const isOpen = id === this.#project.id;
      const [at, op] = isOpen ? this.#placed(path, lineId, after) : placed(path, lineId, after);
      await this.#project.editIn(id, [op], rev);
      if (isOpen) await this.#show(at, op);
      else await api.startRender(id, { line_ids: [at], again: false, listen_from: null });
      showDone(t`${file.name} is in ${isOpen ? t`the scene` : `“${view.name || t`Untitled`}”`}.`);
      return at;
    } catch (error) {
      return void showError(t`${file.name} can’t be used`, error);
    }
  }

  /** Others may have deleted lines during the upload. */
  #placed(path, lineId, after) {
    const { view } = this.#project;
    const known = (one) => (view.lines.has(one) ? one : null);
    return placed(path, known(lineId), after === null ? null : (known(after) ?? view.order.at(-1) ?? null));
  }

  async #show(lineId, { op }) {
    if (op === "insert") {
      this.#selection.go(lineId);
      this.#selection.focus();
    }
    await this.#project.render([lineId]);
  }
}

/** @returns {[string, Op]} the line that plays a file, and the edit for it */
function placed(path, lineId, after) {
  if (lineId) return [lineId, { op: "set", line_ids: [lineId], fields: { path } }];
  const line = { line_id: newId(), kind: /** @type {const} */ ("audio"), path };
  return [line.line_id, { op: "insert", after, lines: [line] }];
}
