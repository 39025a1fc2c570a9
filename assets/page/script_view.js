/** The dialog as one text: typed or pasted here, it is laid onto the lines, which keep their takes. */
import * as api from "./project_api.js";
import { byId, fromTemplate, setText } from "./dom.js";
import { count } from "./format.js";
import { refused } from "./notices.js";

const PAUSE_MS = 300;
const SHOWN_PROBLEMS = 50;

export class ScriptView {
  #area = /** @type {HTMLTextAreaElement} */ (byId("script"));
  #project;
  #timer = null;
  #putting = null;
  #stale = true;

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    this.#project = project;
    this.#area.addEventListener("input", () => this.#typed());
    this.#area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#area.blur();
    });
    this.#area.addEventListener("blur", () => this.put());
    project.drafts = () => this.put();
    project.addEventListener("change", () => this.#changed());
  }

  /** The view comes into sight, or another project does. */
  async show() {
    this.#count();
    if (!this.#project.id || !this.#stale || this.#timer !== null || this.#putting || !this.shown) return;
    this.#stale = false;
    try {
      await this.#project.flush();
      const { text, notices } = await api.script(this.#project.id);
      if (this.#timer === null && this.#area.value !== text) this.#area.value = text;
      this.#problems([...this.#project.notices, ...notices], "notice");
    } catch (error) {
      refused("The script can't be shown", error);
    }
  }

  get shown() {
    return this.#area.checkVisibility();
  }

  /** Another project: what is shown is not its text. */
  forget() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#stale = true;
    this.#area.value = "";
    this.#problems([], "notice");
    return this.show();
  }

  /** Lay what was typed onto the lines, when something was. */
  async put() {
    if (this.#timer === null) return this.#putting;
    clearTimeout(this.#timer);
    this.#timer = null;
    await this.#putting;
    this.#putting = this.#put(this.#area.value);
    await this.#putting;
    this.#putting = null;
  }

  /** Scroll to a line of the text and mark it. @param {number} lineNumber 1-based */
  reveal(lineNumber, { focus = true } = {}) {
    const rows = this.#area.value.split("\n");
    const start = rows.slice(0, lineNumber - 1).reduce((sum, row) => sum + row.length + 1, 0);
    if (focus) this.#area.focus({ preventScroll: true });
    this.#area.setSelectionRange(start, start + (rows[lineNumber - 1] ?? "").length);
    const share = start / Math.max(1, this.#area.value.length);
    this.#area.scrollTop = share * this.#area.scrollHeight - this.#area.clientHeight / 3;
  }

  #typed() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.put(), PAUSE_MS);
  }

  async #put(text) {
    try {
      const notices = await this.#project.putScript(text);
      this.#problems(notices, "notice");
    } catch (error) {
      this.#problems([{ line_number: error.line, message: error.message }], "error");
      if (error.status === 409) this.#stale = true;
    }
  }

  #changed() {
    this.#count();
    if (this.#timer !== null || this.#putting) return;
    this.#stale = true;
    if (document.activeElement !== this.#area) this.show();
  }

  #count() {
    const speech = this.#project.lines.filter(({ kind }) => kind === "speech").length;
    const speakers = this.#project.view.speakers.length;
    const summary = `${count(speech, "line")}, ${count(speakers, "speaker")}`;
    setText(byId("script-count"), speech ? summary : "");
    setText(byId("lines-count"), speech ? summary : "");
  }

  #problems(found, kind) {
    this.#area.setAttribute("aria-invalid", String(kind === "error"));
    const rows = found.slice(0, SHOWN_PROBLEMS).map((problem) => this.#problem(problem, kind));
    byId("problems").replaceChildren(...rows);
  }

  #problem({ line_number: lineNumber, message }, kind) {
    const row = fromTemplate("problem-template");
    row.dataset.kind = kind;
    const place = lineNumber ? `Line ${lineNumber}` : "";
    setText(row.querySelector(".problem-place"), place);
    // The message of an error names its line itself; it is shown once, as the place.
    const text = place && message.startsWith(`${place}: `) ? message.slice(place.length + 2) : message;
    setText(row.querySelector(".problem-text"), text);
    row.querySelector("button").disabled = !lineNumber;
    row.querySelector("button").addEventListener("click", () => this.reveal(lineNumber));
    return row;
  }
}
