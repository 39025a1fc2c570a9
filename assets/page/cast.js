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

const CHOICES_KEY = "tableread.voices";

export class Cast {
  #speakers = [];
  #library = [];
  #choices = JSON.parse(localStorage.getItem(CHOICES_KEY) ?? "{}");
  #addSample;
  #shown = null;

  /** @param {(name: string) => void} addSample begins a sample for a name */
  constructor(addSample) {
    this.#addSample = addSample;
  }

  /** @param {Array<object>} speakers of the parsed dialog */
  show(speakers) {
    this.#speakers = speakers;
    const names = this.#library.map(({ speaker_id: id, name }) => [id, name]);
    const shown = JSON.stringify([speakers, names, this.#choices]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    byId("cast").replaceChildren(...speakers.map((speaker) => this.#row(speaker)));
  }

  /** @param {Array<object>} library the voices there are */
  know(library) {
    this.#library = library;
    this.show(this.#speakers);
  }

  /** Ids of the library's voices that were chosen for names of the dialog. */
  get voices() {
    const chosen = this.#speakers.map(({ name }) => [name, this.#choice(name)]);
    return Object.fromEntries(chosen.filter(([, id]) => id));
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
      this.#choices[fold(name)] = select.value;
      localStorage.setItem(CHOICES_KEY, JSON.stringify(this.#choices));
      announce(`${name}: ${select.selectedOptions[0].text}.`);
      this.show(this.#speakers);
      const again = [...byId("cast").querySelectorAll("select")];
      again.find((one) => one.ariaLabel === select.ariaLabel)?.focus();
    });
  }
}
