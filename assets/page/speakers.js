/** The cast of the dialog and the library of voices: listen, rename, remove, add a sample. */
import * as api from "./api.js";
import { byId, fromTemplate, safeColour, setHidden, setText } from "./dom.js";
import { count, fold, length } from "./format.js";
import { announce, notice, refused } from "./notices.js";

const KINDS = {
  sample: "own sample",
  preset: "preset voice",
  described: "described voice",
  "built-in": "built-in voice",
};

const CHOICES_KEY = "tableread.voices";

/** Event "changed" after the library was changed from here. */
export class Speakers extends EventTarget {
  #audio = new Audio();
  #cast = [];
  #library = [];
  #choices = JSON.parse(localStorage.getItem(CHOICES_KEY) ?? "{}");
  #listening = null;
  #shown = null;
  #rows = new Map();

  constructor() {
    super();
    this.#audio.addEventListener("ended", () => this.#hush());
  }

  /** @param {Array<object>} speakers of the parsed dialog */
  showCast(speakers) {
    this.#cast = speakers;
    byId("cast").replaceChildren(...speakers.map((speaker) => this.#castRow(speaker)));
  }

  /** Ids of the library's voices that were chosen for names of the dialog. */
  get voices() {
    const chosen = this.#cast.map(({ name }) => [name, this.#choice(name)]);
    return Object.fromEntries(chosen.filter(([, id]) => id));
  }

  /** @param {Array<object>} speakers of the library; a row stays while its speaker does */
  showLibrary(speakers) {
    const shown = JSON.stringify(speakers);
    if (shown === this.#shown) return;
    const first = this.#shown === null;
    this.#shown = shown;
    this.#library = speakers;
    this.showCast(this.#cast);
    const rows = new Map();
    for (const speaker of speakers) {
      const key = JSON.stringify(speaker);
      rows.set(key, this.#rows.get(key) ?? this.#libraryRow(speaker));
    }
    this.#rows = rows;
    arrange(byId("library"), [...rows.values()]);
    setHidden(byId("library-empty"), speakers.length > 0);
    if (!first) this.dispatchEvent(new Event("changed"));
  }

  /**
   * Show what became of the form for a new voice.
   * @returns {Array} what the form holds now: emptied when it was taken, else kept
   */
  outcome({ kind, title, text }, form) {
    announce(`${title} ${text}`);
    notice("speaker", { kind: kind === "done" ? "info" : "error", title, text });
    if (kind !== "done") return form;
    this.dispatchEvent(new Event("changed"));
    return ["", null, ""];
  }

  #castRow({ name, colour, lines, voice }) {
    const row = fromTemplate("cast-template");
    fill(row, name, colour, count(lines, "line"));
    this.#offerVoices(row.querySelector(".voice-choice"), name, KINDS[voice]);
    const add = row.querySelector(".voice-add");
    setHidden(add, voice !== "built-in" || Boolean(this.#choice(name)));
    add.ariaLabel = `Add a sample for ${name}`;
    add.addEventListener("click", () => beginSample(name));
    return row;
  }

  /** The voice chosen for a name, while the library has it. */
  #choice(name) {
    const id = this.#choices[fold(name)];
    return this.#library.some((speaker) => speaker.speaker_id === id) ? id : "";
  }

  #offerVoices(select, name, own) {
    const others = this.#library.filter((speaker) => fold(speaker.name) !== fold(name));
    const options = others.map((speaker) => new Option(`voice of ${speaker.name}`, speaker.speaker_id));
    select.replaceChildren(new Option(own, ""), ...options);
    select.value = this.#choice(name);
    select.ariaLabel = `Voice for ${name}`;
    select.addEventListener("change", () => {
      this.#choices[fold(name)] = select.value;
      localStorage.setItem(CHOICES_KEY, JSON.stringify(this.#choices));
      this.showCast(this.#cast);
      announce(`${name}: ${select.selectedOptions[0].text}.`);
    });
  }

  #libraryRow(speaker) {
    const row = fromTemplate("voice-template");
    const { name, colour, sample_s: seconds } = speaker;
    fill(row, name, colour, seconds === null ? "built-in voice" : `sample, ${length(seconds)}`);
    this.#button(row, "listen", `Listen to ${name}`, (button) => this.#listen(speaker, button));
    setHidden(row.querySelector(".voice-listen"), seconds === null);
    this.#button(row, "edit", `Rename ${name}`, () => this.#edit(row, speaker));
    this.#button(row, "remove", `Remove ${name}`, () => this.#remove(speaker));
    return row;
  }

  #button(row, what, label, act) {
    const button = row.querySelector(`.voice-${what}`);
    button.ariaLabel = label;
    button.addEventListener("click", () => act(button));
  }

  #listen({ speaker_id: id }, button) {
    const again = this.#listening === button;
    this.#hush();
    if (again) return;
    this.#listening = button;
    button.setAttribute("aria-pressed", "true");
    this.#audio.src = api.sampleUrl(id);
    this.#audio.play().catch(() => this.#hush());
  }

  #hush() {
    this.#audio.pause();
    this.#listening?.setAttribute("aria-pressed", "false");
    this.#listening = null;
  }

  #edit(row, { speaker_id: id, name }) {
    const form = row.querySelector(".voice-rename");
    const field = form.querySelector("input");
    const close = () => {
      setHidden(form, true);
      row.classList.remove("renaming");
    };
    field.value = name;
    field.ariaLabel = `New name for ${name}`;
    row.classList.add("renaming");
    setHidden(form, false);
    field.select();
    field.onkeydown = (event) => {
      if (event.key === "Escape") close();
    };
    form.onsubmit = (event) => {
      event.preventDefault();
      close();
      this.#change("This name can't be used", () => api.renameSpeaker(id, field.value));
    };
  }

  #remove({ speaker_id: id, name }) {
    const dialog = /** @type {HTMLDialogElement} */ (byId("confirm"));
    setText(byId("confirm-title"), `Remove ${name}?`);
    const text = "The recording is deleted. Lines of this name are read with the built-in voice.";
    setText(byId("confirm-text"), text);
    dialog.returnValue = "keep";
    dialog.onclose = () => {
      if (dialog.returnValue !== "remove") return;
      this.#change("The voice can't be removed", () => api.removeSpeaker(id));
    };
    dialog.showModal();
  }

  async #change(title, act) {
    try {
      await act();
    } catch (error) {
      refused(title, error);
    }
    this.dispatchEvent(new Event("changed"));
  }
}

/** Put rows in order without moving those that stand right: a moved field loses its focus. */
function arrange(list, rows) {
  [...list.children].filter((row) => !rows.includes(row)).forEach((row) => row.remove());
  rows.forEach((row, idx) => {
    if (list.children[idx] !== row) list.insertBefore(row, list.children[idx] ?? null);
  });
}

function fill(row, name, colour, kind) {
  row.querySelector(".swatch").style.background = safeColour(colour);
  setText(row.querySelector(".voice-name"), name);
  setText(row.querySelector(".voice-kind"), kind);
}

/** Put the name into the form, which belongs to Gradio, and lead the person there. */
function beginSample(name) {
  const field = byId("speaker-name").querySelector("input, textarea");
  field.value = name;
  field.dispatchEvent(new Event("input", { bubbles: true }));
  byId("add-speaker").scrollIntoView({ block: "nearest", behavior: "smooth" });
  field.focus({ preventScroll: true });
}
