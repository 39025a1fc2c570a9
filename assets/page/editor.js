/** The script as text: kept in the browser, read by the studio shortly after each change. */
import * as api from "./api.js";
import { byId, fromTemplate, setText } from "./dom.js";
import { count } from "./format.js";

const PAUSE_MS = 180;
const TEXT_KEY = "tableread.script";
const SHOWN_PROBLEMS = 50;
const NOTHING = { lines: [], speakers: [], notices: [], error: null };

/** Event "parsed" with `detail` {text, lines, speakers, notices}; a broken script tells nothing. */
export class Editor extends EventTarget {
  #area = /** @type {HTMLTextAreaElement} */ (byId("script"));
  #timer = null;
  #abort = null;
  #notices = [];

  /** @param {string} opening shown when nothing was written in this browser yet */
  constructor(opening) {
    super();
    this.#area.value = localStorage.getItem(TEXT_KEY) ?? opening;
    this.#area.addEventListener("input", () => this.#changed());
    this.#area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#area.blur();
    });
  }

  get text() {
    return this.#area.value;
  }

  /** Ask the studio to read the text now; an answer to an older text is dropped. */
  async parse() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#abort?.abort();
    this.#abort = new AbortController();
    const text = this.text;
    try {
      const parsed = text.trim() ? await api.parse(text, this.#abort.signal) : NOTHING;
      this.#notices = parsed.notices;
      this.#show(parsed);
      if (parsed.error) return;
      this.dispatchEvent(new CustomEvent("parsed", { detail: { text, ...parsed } }));
    } catch (error) {
      if (error.name !== "AbortError") this.#problems([{ message: error.message }], "error");
    }
  }

  /** Read a change at once that would wait for the next pause in typing. */
  hurry() {
    if (this.#timer !== null) this.parse();
  }

  /** Show what the studio refused at its place. @param {api.ApiError} error */
  refuse(error) {
    this.#problems([{ line_number: error.line, message: error.message }], "error");
    if (error.line) this.reveal(error.line, { focus: false });
  }

  /** Add what was noticed when the script was planned for the voice. */
  note(notices) {
    const known = new Set(this.#notices.map(({ message }) => message));
    this.#notices = [...this.#notices, ...notices.filter(({ message }) => !known.has(message))];
    this.#problems(this.#notices, "notice");
  }

  /** Scroll to a line of the text and mark it. @param {number} lineNumber 1-based */
  reveal(lineNumber, { focus = true } = {}) {
    const rows = this.text.split("\n");
    const start = rows.slice(0, lineNumber - 1).reduce((sum, row) => sum + row.length + 1, 0);
    if (focus) this.#area.focus({ preventScroll: true });
    this.#area.setSelectionRange(start, start + (rows[lineNumber - 1] ?? "").length);
    const share = start / Math.max(1, this.text.length);
    this.#area.scrollTop = share * this.#area.scrollHeight - this.#area.clientHeight / 3;
  }

  #changed() {
    this.#store();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.parse(), PAUSE_MS);
  }

  #store() {
    try {
      localStorage.setItem(TEXT_KEY, this.text);
    } catch (fault) {
      const message = "This browser has no room left: the script is not kept over a reload.";
      this.#problems([{ message }], "error");
    }
  }

  #show({ lines, speakers, notices, error }) {
    const speech = lines.filter((line) => line.kind === "speech").length;
    const summary = `${count(speech, "line")}, ${count(speakers.length, "speaker")}`;
    setText(byId("script-count"), speech ? summary : "");
    if (error) return this.#problems([{ line_number: error.line, message: error.message }], "error");
    this.#problems(notices, "notice");
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
