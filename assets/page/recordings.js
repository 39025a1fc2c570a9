/** Lines that play a recording: choose its file, drop one, add one; it is heard as soon as it is in. */
import { newId } from "./dialog.js";
import { byId } from "./dom.js";
import { announce, done, notice, refused } from "./notices.js";
import * as api from "./project_api.js";

const SUFFIX = /\.(wav|flac|mp3|m4a|aac|ogg|oga|opus|webm|aiff?)$/i;

/** Whether a file holds sound, as far as its name and type say. @param {File} file */
export function isSound({ name, type }) {
  return type.startsWith("audio/") || SUFFIX.test(name);
}

export class Recordings {
  #field = /** @type {HTMLInputElement} */ (byId("recording-file"));
  #project;
  #selection;
  #lineId = null;

  /** @param {object} parts project, selection */
  constructor({ project, selection }) {
    this.#project = project;
    this.#selection = selection;
    byId("add-recording").addEventListener("click", () => this.choose(null));
    byId("recording-choose").addEventListener("click", () => this.choose(selection.current));
    this.#field.addEventListener("change", () => {
      const [file] = this.#field.files;
      this.#field.value = ""; // so that the same file can be chosen again
      if (file) this.bring(file, this.#lineId);
    });
  }

  /** Ask for a file. @param {string | null} lineId of the line that plays it; null for a new one */
  choose(lineId) {
    this.#lineId = lineId;
    this.#field.click();
  }

  /**
   * Bring a file into the project and let a line play it.
   * @param {File} file @param {string | null} lineId a recording's, or null for a new line
   * @param {string | null} after which line a new one stands
   */
  async bring(file, lineId, after = this.#selection.current ?? this.#project.view.order.at(-1) ?? null) {
    announce(`${file.name} is being brought in.`);
    try {
      const { path } = await api.addAudio(this.#project.id, file);
      const at = this.#put(path, lineId, after);
      await this.#project.render([at]);
      notice("refused", {});
      done(`${file.name} is in the scene.`);
    } catch (error) {
      refused(`${file.name} can't be used`, error);
    }
  }

  /** @returns {string} the line that plays it now */
  #put(path, lineId, after) {
    if (lineId && this.#project.line(lineId)) {
      this.#project.edit([{ op: "set", line_ids: [lineId], fields: { path } }]);
      return lineId;
    }
    const line = { line_id: newId(), kind: "audio", path };
    this.#project.edit([{ op: "insert", after, lines: [line] }]);
    this.#selection.go(line.line_id);
    this.#selection.focus();
    return line.line_id;
  }
}
