/** Who speaks in the dialog, and with which of the library's voices. */
import { byId, fromTemplate, safeColour, setHidden, setText } from "./dom.js";
import { count, fold } from "./format.js";
import { announce } from "./notices.js";

const KINDS = {
  sample: "own sample",
  preset: "preset voice",
  described: "described voice",
  "built-in": "built-in voice",
};

/** Event "choose" with `detail` {name, voice}; the voice is empty for the name's own. */
export class Cast extends EventTarget {
  #speakers = [];
  #library = [];
  #choices = {};
  #addSample;
  #shown = null;

  /** @param {(name: string) => void} addSample begins a sample for a name */
  constructor(addSample) {
    super();
    this.#addSample = addSample;
  }

  /**
   * @param {Array<object>} speakers of the dialog
   * @param {Object<string, string|null>} chosen ids of the library's voices by name
   */
  show(speakers, chosen) {
    this.#speakers = speakers;
    this.#choices = Object.fromEntries(
      Object.entries(chosen).map(([name, voice]) => [fold(name), voice ?? ""]),
    );
    this.#refresh();
  }

  #refresh() {
    const speakers = this.#speakers;
    const names = this.#library.map(({ speaker_id: id, name }) => [id, name]);
    const shown = JSON.stringify([speakers, names, this.#choices]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    byId("cast").replaceChildren(...speakers.map((speaker) => this.#row(speaker)));
  }

  /** @param {Array<object>} library the voices there are */
  know(library) {
    this.#library = library;
    this.#refresh();
  }

  #row({ name, colour, lines, voice }) {
    const row = fromTemplate("cast-template");
    row.querySelector(".swatch").style.background = safeColour(colour);
    setText(row.querySelector(".voice-name"), name);
    setText(row.querySelector(".voice-kind"), count(lines, "line"));
    this.#offer(row.querySelector(".voice-choice"), name, KINDS[voice]);
    const add = row.querySelector(".voice-add");
    setHidden(add, voice !== "built-in" || Boolean(this.#choice(name)));
    add.ariaLabel = `Add a sample for ${name}`;
    add.addEventListener("click", () => this.#addSample(name));
    return row;
  }

  /** The voice chosen for a name, while the library has it. */
  #choice(name) {
    const id = this.#choices[fold(name)];
    return this.#library.some((speaker) => speaker.speaker_id === id) ? id : "";
  }

  #offer(select, name, own) {
    const others = this.#library.filter((speaker) => fold(speaker.name) !== fold(name));
    const options = others.map((other) => new Option(`voice of ${other.name}`, other.speaker_id));
    select.replaceChildren(new Option(own, ""), ...options);
    select.value = this.#choice(name);
    select.ariaLabel = `Voice for ${name}`;
    select.addEventListener("change", () => {
      const detail = { name, voice: select.value };
      this.#choices[fold(name)] = select.value;
      this.dispatchEvent(new CustomEvent("choose", { detail }));
      announce(`${name}: ${select.selectedOptions[0].text}.`);
      this.#refresh();
      const again = [...byId("cast").querySelectorAll("select")];
      again.find((one) => one.ariaLabel === select.ariaLabel)?.focus();
    });
  }
}
