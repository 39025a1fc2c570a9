/** A character's settings in this project, which its lines have where they say nothing themselves. */
import { bus } from "../core/bus.js";
import { byId, fromTemplate, isDirty, safeColour, setHidden, setText } from "../core/dom.js";
import { fold } from "../core/format.js";
import { pageLanguage, t, translateServer } from "../core/texts.js";
import { characterKey, characterOf } from "../document/document.js";
import { Sheet } from "./sheet.js";

/** @import { EngineParam, StudioState } from "../core/types" */

const field = (name) => byId(`character-${name}`);
const SET_BACK = { params: null, level_db: null, gap_s: null, pan: null };

/** It opens at "cast.settingsWanted". */
export class CharacterPanel {
  #project;
  #sheet = new Sheet(byId("character-panel"));
  /** @type {string | null} */
  #name = null;
  /** @type {Map<string, {param: EngineParam, range: any, number: any, reset: any}>} */
  #rows = new Map();
  #offered = "";
  /** @type {StudioState["speakers"]} */
  #library = [];

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    bus.on("cast.settingsWanted", ({ name }) => this.#open(name));
    bus.on("project.meta", () => this.#name !== null && this.#show());
    bus.on("engine.state", ({ backend, speakers }) => this.#offer(backend, speakers));
    this.#sheet.events.on("closed", () => this.#left());
    field("form").addEventListener("submit", (event) => event.preventDefault());
    field("mood").addEventListener("change", ({ target }) => this.#setParam("mood", target.value.trim() || null));
    field("instruct").addEventListener("change", ({ target }) => this.#setParam("instruct", target.value.trim() || null));
    this.#listen("level", "level_db");
    this.#listen("gap", "gap_s");
    field("pan").addEventListener("input", ({ target }) => showPan(target.value / 100));
    field("pan").addEventListener("change", ({ target }) => this.#edit({ pan: target.value / 100 }, "pan"));
    field("pan-reset").addEventListener("click", () => {
      this.#edit({ pan: null });
      field("pan").focus();
    });
    field("reset").addEventListener("click", () => this.#edit(SET_BACK));
  }

  get #character() {
    return characterOf(this.#project.view, this.#name);
  }

  /** @param {string} name */
  #open(name) {
    this.#name = name;
    setText(field("title"), t`Settings of ${name}`);
    this.#show();
    this.#sheet.open();
    field("params").querySelector("input")?.focus();
  }

  /** @param {StudioState["backend"]} backend @param {StudioState["speakers"]} library */
  #offer({ params, instructions }, library) {
    this.#library = library;
    setHidden(field("instruct-part"), !instructions);
    const offered = JSON.stringify(params);
    if (offered !== this.#offered) {
      this.#offered = offered;
      this.#rows.clear();
      field("params").replaceChildren(...params.map((param) => this.#row(param)));
    }
    if (this.#name !== null) this.#show();
  }

  #row(param) {
    const row = fromTemplate("character-param-template");
    const [range, number, reset] = [".setting-range", ".setting-number", ".setting-reset"].map((one) => row.querySelector(one));
    const label = translateServer(param.label);
    setText(row.querySelector(".setting-label"), label);
    row.title = translateServer(param.help);
    for (const input of [range, number]) {
      Object.assign(input, { min: param.minimum, max: param.maximum, step: param.step });
      input.setAttribute("aria-label", label);
      input.addEventListener("change", () => {
        if (input.validity.valid && input.value !== "") this.#setParam(param.name, Number(input.value));
        else this.#show();
      });
    }
    range.addEventListener("input", () => (number.value = range.value));
    reset.setAttribute("aria-label", t`Reset ${pageLanguage === "en" ? label.toLowerCase() : label}`);
    reset.addEventListener("click", () => {
      this.#setParam(param.name, null);
      number.focus();
    });
    this.#rows.set(param.name, { param, range, number, reset });
    return row;
  }

  #listen(name, kept) {
    field(name).addEventListener("change", ({ target }) => {
      if (!target.validity.valid) return this.#show();
      return this.#edit({ [kept]: target.value === "" ? null : Number(target.value) }, kept);
    });
  }

  #setParam(name, value) {
    const { [name]: _, ...others } = this.#character.params;
    this.#edit({ params: value === null ? others : { ...others, [name]: value } }, value === null ? null : name);
  }

  /** @param {object} fields @param {string | null} [control] whose changes in quick succession are one step of undo */
  #edit(fields, control = null) {
    const group = control && `character ${characterKey(this.#project.view, this.#name)} ${control}`;
    this.#project.edit([{ op: "character", speaker: this.#name, fields }], { group });
    this.#show();
  }

  #show() {
    const speaker = this.#project.view.speakers.find(({ name }) => fold(name) === fold(this.#name));
    if (!speaker) return this.#sheet.isOpen && this.#sheet.close();
    const { params, level_db: level, gap_s: gap, pan } = this.#character;
    byId("character-panel").querySelector(".swatch").style.background = safeColour(speaker.colour);
    for (const [name, { param, range, number, reset }] of this.#rows) {
      const own = params[name];
      if (!isDirty(number)) number.value = String(own ?? param.default);
      if (!range.matches(":active")) range.value = String(own ?? param.default);
      setHidden(reset, own === undefined);
    }
    put("mood", params.mood);
    put("instruct", params.instruct);
    put("level", level || undefined);
    put("gap", gap ?? undefined);
    if (!field("pan").matches(":active")) {
      field("pan").value = String(100 * pan);
      showPan(pan);
    }
    setHidden(field("pan-reset"), !pan);
    const moods = this.#library.find(({ name, speaker_id: id }) => fold(name) === fold(this.#name) || id === this.#project.view.cast[this.#name])?.moods ?? [];
    field("moods").replaceChildren(...moods.map((mood) => new Option(mood, mood)));
    return undefined;
  }

  #left() {
    const button = [...byId("cast").querySelectorAll(".voice-settings")].find(({ ariaLabel }) => ariaLabel === t`Settings of ${this.#name}`);
    this.#name = null;
    button?.focus();
  }
}

/** The place between left and right in words, for the eye and for a screen reader. @param {number} pan -1 to 1 */
function showPan(pan) {
  const percent = Math.round(100 * Math.abs(pan));
  const said = !percent ? t`Centre` : pan < 0 ? t`${percent} % left` : t`${percent} % right`;
  setText(field("pan-value"), said);
  field("pan").setAttribute("aria-valuetext", said);
}

function put(name, value) {
  if (!isDirty(field(name))) field(name).value = value === undefined ? "" : String(value);
}
