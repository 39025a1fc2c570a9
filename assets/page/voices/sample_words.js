/** The words and the language of a recording, as a recogniser understands them; both can be edited. */
import * as api from "../core/api.js";
import { byId, setText } from "../core/dom.js";
import { t } from "../core/texts.js";

const FIELDS = { transcript: "sample-transcript", language: "sample-language" };

/** Fills in what is said in a recording, and leaves alone what the user wrote. */
export class SampleWords {
  /** What was filled in, by the field's name. @type {Record<string, string>} */
  #filled = {};
  /** @type {AbortController | null} */
  #running = null;

  /** Listen to a part of an upload. @param {string} upload @param {object} cut the part */
  async listen(upload, cut) {
    this.#running?.abort();
    if (!this.#isOurs("transcript")) return;
    const running = (this.#running = new AbortController());
    const language = this.#isOurs("language") ? null : byId(FIELDS.language).value.trim() || null;
    this.#say(t`Listening to what is said…`);
    try {
      const found = await api.readUploadWords(upload, { ...cut, language }, running.signal);
      if (running !== this.#running) return;
      for (const name of Object.keys(FIELDS)) this.#fill(name, found[name] ?? "");
      const advice = found.transcript ? t`Check the transcript: it was written by a recogniser.` : "";
      this.#say([advice, found.note].filter(Boolean).join(" "));
    } catch (error) {
      if (running === this.#running) this.#say(error.name === "AbortError" ? "" : error.message);
    }
  }

  /** Forget a recording, and what is being recognised in it. */
  leave() {
    this.#running?.abort();
    this.#running = null;
    this.#filled = {};
    this.#say("");
  }

  /** Whether the user wrote what is said. */
  get isWritten() {
    return !this.#isOurs("transcript");
  }

  /** Whether a field has nothing that the user wrote. */
  #isOurs(name) {
    const { value } = byId(FIELDS[name]);
    return value.trim() === "" || value === this.#filled[name];
  }

  #fill(name, text) {
    if (!this.#isOurs(name)) return;
    byId(FIELDS[name]).value = text;
    this.#filled[name] = text;
  }

  #say(text) {
    setText(byId("sample-words-note"), text);
  }
}
