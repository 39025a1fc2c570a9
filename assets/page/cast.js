/** Who speaks in the dialog, and with which of the library's voices. */
import { byId, fromTemplate, safeColour, setHidden, setText } from "./dom.js";
import { count, fold } from "./format.js";
import { announce } from "./notices.js";
import { suggestions } from "./voicesuggest.js";

const KINDS = {
  sample: "own sample",
  preset: "preset voice",
  described: "described voice",
  "built-in": "built-in voice",
};

/**
 * Events: "choose" with `detail` {name, voice}, where the voice is empty for the name's own,
 * "preset" with `detail` {name, preset} when one of the engine's voices is to be the name's own,
 * "rename" with `detail` {from, to}, and "mark" with `detail` {name} when all lines of a name are meant.
 */
export class Cast extends EventTarget {
  #speakers = [];
  #library = [];
  #choices = {};
  #engine = null;
  #addSample;
  #shown = null;
  #renamed = null;

  /** @param {(name: string) => void} addSample begins a sample for a name */
  constructor(addSample) {
    super();
    this.#addSample = addSample;
    byId("cast-suggested").addEventListener("click", () => this.#useAll());
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
    const suggested = suggestions(speakers, this.#choices, this.#library, this.#engine);
    const names = this.#library.map(({ speaker_id: id, name }) => [id, name]);
    const shown = JSON.stringify([
      speakers, names, this.#choices, [...suggested], this.#engine?.builtin_voice,
    ]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const list = byId("cast");
    const held = list.contains(document.activeElement) ? document.activeElement.ariaLabel : null;
    list.replaceChildren(...speakers.map((speaker, at) => this.#row(speaker, suggested.get(speaker.name), at + 1)));
    setHidden(byId("cast-suggested"), suggested.size < 2);
    const label = held && [held, this.#renamed].find((one) => one && controlOf(list, one));
    if (label) shownOf(controlOf(list, label)).focus();
  }

  /** @param {Array<object>} library the voices there are @param {object} offer what the engine can do */
  know(library, offer) {
    this.#library = library;
    this.#engine = offer;
    this.#refresh();
  }

  #row({ name, colour, lines, voice }, suggested, place) {
    const row = fromTemplate("cast-template");
    row.querySelector(".swatch").style.background = safeColour(colour);
    setText(row.querySelector(".voice-name"), name);
    if (place <= 9) row.querySelector(".voice-name").title = `Ctrl+${place} or Alt+${place} gives ${name} the marked lines`;
    this.#offerLines(row.querySelector(".voice-mark"), name, count(lines, "line"));
    this.#offerName(row, name);
    this.#offer(row.querySelector(".voice-choice"), name, this.#kind(voice));
    this.#offerSuggested(row.querySelector(".voice-suggest"), name, suggested);
    const add = row.querySelector(".voice-add");
    setHidden(add, voice !== "built-in" || Boolean(this.#choice(name)));
    add.ariaLabel = `Add a sample for ${name}`;
    add.addEventListener("click", () => this.#addSample(name));
    return row;
  }

  #offerLines(button, name, lines) {
    setText(button, lines);
    button.title = `Mark all lines of ${name}`;
    button.ariaLabel = `${lines} of ${name}: mark all`;
    button.addEventListener("click", () => this.dispatchEvent(new CustomEvent("mark", { detail: { name } })));
  }

  #kind(voice) {
    return voice === "built-in" && this.#engine?.builtin_voice === false ? "no voice yet" : KINDS[voice];
  }

  #offerSuggested(button, name, suggested) {
    setHidden(button, !suggested);
    if (!suggested) return;
    setText(button, `Use ${suggested.label}`);
    button.ariaLabel = `Use ${suggested.label} for ${name}`;
    button.addEventListener("click", () => {
      this.#use(name, suggested);
      announce(`${name}: ${suggested.label}.`);
    });
  }

  #use(name, { voice, preset }) {
    if (preset) return this.dispatchEvent(new CustomEvent("preset", { detail: { name, preset } }));
    this.#choices[fold(name)] = voice;
    return this.dispatchEvent(new CustomEvent("choose", { detail: { name, voice } }));
  }

  #useAll() {
    const all = suggestions(this.#speakers, this.#choices, this.#library, this.#engine);
    for (const [name, suggested] of all) this.#use(name, suggested);
    announce(`${count(all.size, "voice")} chosen.`);
    this.#refresh();
  }

  /** Another name for all lines of a speaker, written where the name stands. */
  #offerName(row, name) {
    const part = (what) => row.querySelector(`.voice-${what}`);
    const field = part("rename-field");
    field.ariaLabel = `New name of ${name}`;
    part("rename").ariaLabel = `Rename ${name} in the script`;
    const show = (writing) => {
      setHidden(field, !writing);
      setHidden(part("name"), writing);
      if (!writing) return part("rename").focus();
      field.value = name;
      return field.select();
    };
    part("rename").addEventListener("click", () => show(field.hidden));
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation();
      if (event.key === "Enter") this.#rename(name, field.value.trim());
      show(false);
    });
    field.addEventListener("blur", () => {
      setHidden(field, true);
      setHidden(part("name"), false);
    });
  }

  #rename(from, to) {
    if (!to || to === from) return;
    this.#renamed = `Rename ${to} in the script`;
    this.dispatchEvent(new CustomEvent("rename", { detail: { from, to } }));
    announce(`${from} is called ${to}.`);
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
    });
  }
}

/** Who has a sample now needs no button for one: the keyboard goes on at the choice beside it. */
function shownOf(control) {
  return control.hidden ? control.closest(".voice").querySelector(".voice-choice") : control;
}

/** Rows are made anew; a control is the same one when it has the same name. */
function controlOf(list, label) {
  return [...list.querySelectorAll("button, select")].find((one) => one.ariaLabel === label);
}
