/** The language of the script, for lines whose voice has none. */
import { byId, setHidden } from "./dom.js";

/** Event "choose" with `detail` a code, or null for the voice's own. */
export class ScriptLanguage extends EventTarget {
  #select = /** @type {HTMLSelectElement} */ (byId("script-language"));
  #code = null;
  #languages = {};

  constructor() {
    super();
    this.#select.addEventListener("change", () => {
      this.#code = this.#select.value || null;
      this.dispatchEvent(new CustomEvent("choose", { detail: this.#code }));
    });
  }

  /** @param {Object<string, string>} languages of the engine, names by code */
  offer(languages) {
    if (JSON.stringify(languages) === JSON.stringify(this.#languages)) return;
    this.#languages = languages;
    this.#refresh();
  }

  /** @param {string | null} code what the project says */
  show(code) {
    if (code === this.#code) return;
    this.#code = code;
    this.#refresh();
  }

  /** A language that the engine hasn't stays to be seen. */
  #refresh() {
    const options = Object.entries(this.#languages).map(([code, name]) => new Option(name, code));
    const known = !this.#code || this.#code in this.#languages;
    if (!known) options.push(new Option(`${this.#code} (not in this voice engine)`, this.#code));
    this.#select.replaceChildren(new Option("not said", ""), ...options);
    this.#select.value = this.#code ?? "";
    setHidden(this.#select.closest("label"), Object.keys(this.#languages).length < 2 && !this.#code);
  }
}
