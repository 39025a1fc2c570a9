/** The cast: the speakers of the dialog with their voices, and settings of the whole script. */
import { bus } from "../core/bus.js";
import { askDialog, byId, focusedElement, fromTemplate, isDirty, languageOptions, safeColour, setHidden, setText } from "../core/dom.js";
import { fold, formatCount } from "../core/format.js";
import { announce } from "../core/notices.js";
import { t, translateServer } from "../core/texts.js";
import { characterOf } from "../document/document.js";
import { castOps } from "./voice_candidates.js";

/** @import { CastSpeaker, EngineOffer, Op, Voice, VoiceChoice } from "../core/types" */

const SHORTEST_WORD = 3;

/**
 * @param {CastSpeaker[]} speakers of the dialog: {name, voice}
 * @param {Object<string, string>} choices ids of the library's voices by folded name
 * @param {Voice[]} library
 * @param {EngineOffer} offer what the engine offers
 * @param {Record<string, import("../core/types").Character>} characters who may have its voices
 * @returns {Map<string, VoiceChoice>} by name
 */
export function suggestVoices(speakers, choices, library, offer, characters) {
  const taken = takenVoices(speakers, choices, library);
  for (const { voices } of Object.values(characters)) taken.add(`preset ${voices[offer?.backend]}`);
  const open = speakers.filter(({ name, voice }) => voice === "built-in" && !choices[fold(name)]);
  const found = new Map();
  for (const { name } of open) {
    const match = library.find((one) => !taken.has(one.speaker_id) && hasVoice(one) && isLike(one, name));
    if (!match) continue;
    taken.add(match.speaker_id);
    found.set(name, { label: match.name, voice: match.speaker_id });
  }
  // With a built-in voice for each name, speakers sound different already.
  const presets = offer && !offer.builtin_by_name ? offer.presets : [];
  for (const speaker of open.filter(({ name }) => !found.has(name))) {
    const preset = freePreset(presets, speakers.indexOf(speaker) / speakers.length, taken);
    if (!preset) break;
    taken.add(`preset ${preset.preset_id}`);
    found.set(speaker.name, { label: preset.label, preset: preset.preset_id });
  }
  return found;
}

/** Neighbours in an engine's list sound alike, so speakers are spread evenly over it. */
function freePreset(presets, share, taken) {
  const first = Math.floor(share * presets.length);
  const turned = [...presets.slice(first), ...presets.slice(0, first)];
  return turned.find(({ preset_id: id }) => !taken.has(`preset ${id}`));
}

/** The voices that speakers of the dialog have. */
function takenVoices(speakers, choices, library) {
  const names = new Set(speakers.map(({ name }) => fold(name)));
  const chosen = new Set(Object.values(choices));
  const used = library.filter(({ name, speaker_id: id }) => names.has(fold(name)) || chosen.has(id));
  const presets = used.filter(({ preset }) => preset).map(({ preset }) => `preset ${preset}`);
  return new Set([...used.map(({ speaker_id: id }) => id), ...presets]);
}

function hasVoice({ samples, preset, description }) {
  return samples.length > 0 || Boolean(preset) || Boolean(description);
}

/** Whether a voice has a speaker's name, or has it or a word of it as a tag. */
function isLike({ name, tags }, wanted) {
  const words = wordsOf(wanted);
  const own = new Set([...wordsOf(name), ...tags.flatMap((tag) => [fold(tag), ...wordsOf(tag)])]);
  return words.some((word) => own.has(word)) || own.has(fold(wanted));
}

/** The significant words of a name: of "Mrs. Vale (O.S.)" it is "vale". */
function wordsOf(name) {
  const plain = fold(name).replace(/\(.*?\)/g, " ");
  return (plain.match(/\p{L}+/gu) ?? []).filter((word) => word.length >= SHORTEST_WORD && !TITLES.has(word));
}

const TITLES = new Set(["mrs", "miss", "the", "old", "young", "doctor", "frau", "herr", "sir", "lady", "and"]);

/** The speakers in a stable order, as that of the dialog changes with the lines. */
export class CastOrder {
  #project;
  #id = null;
  #names = [];
  #of = null;
  #ordered = [];

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
  }

  /** The speakers, in the order in which they first appeared on the page. @returns {CastSpeaker[]} */
  get speakers() {
    const { id, view: { speakers } } = this.#project;
    if (id !== this.#id) this.#names = [];
    if (id === this.#id && speakers === this.#of) return this.#ordered;
    this.#id = id;
    const byName = new Map(speakers.map((speaker) => [fold(speaker.name), speaker]));
    const kept = this.#names.filter((name) => byName.has(name));
    this.#names = [...new Set([...kept, ...byName.keys()])];
    this.#of = speakers;
    this.#ordered = this.#names.map((name) => byName.get(name));
    return this.#ordered;
  }

  /** @param {number} place from 1 @returns {string | undefined} a name */
  name(place) {
    return this.speakers[place - 1]?.name;
  }
}

/** The language of the script, for lines whose voice has none. */
class ScriptLanguage {
  #select = byId("script-language");
  #code = null;
  #languages = {};

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#select.addEventListener("change", () => {
      this.#code = this.#select.value || null;
      project.editSettings({ language: this.#code });
    });
    bus.on("project.meta", () => this.#show(project.view.settings.language ?? null));
    bus.on("library.loaded", ({ offer }) => this.#offer(offer.languages));
  }

  /** @param {Object<string, string>} languages of the engine, names by code */
  #offer(languages) {
    if (JSON.stringify(languages) === JSON.stringify(this.#languages)) return;
    this.#languages = languages;
    this.#refresh();
  }

  /** @param {string | null} code what the project says */
  #show(code) {
    if (code === this.#code) return;
    this.#code = code;
    this.#refresh();
  }

  /** A language that the engine doesn't have stays visible. */
  #refresh() {
    const options = languageOptions(this.#languages, this.#code);
    const known = !this.#code || this.#code in this.#languages;
    if (!known) options.push(new Option(t`${this.#code} (not supported by this engine)`, this.#code));
    this.#select.replaceChildren(new Option(t`Auto`, ""), ...options);
    this.#select.value = this.#code ?? "";
    setHidden(this.#select.closest("label"), options.length < 2 && !this.#code);
  }
}

/** How often a line is rendered while its take has quality issues; the best take is used. */
function connectRetrySetting(project) {
  const select = byId("tries");
  select.addEventListener("change", () => project.editSettings({ tries: Number(select.value) }));
  bus.on("project.meta", () => (select.value = String(project.view.settings.tries ?? 1)));
}

/** How soon a line follows the one before, about; 0 lays them back to back. */
function connectGapSetting(project) {
  const field = byId("usual-gap");
  field.addEventListener("change", () => {
    if (field.validity.valid) project.editSettings({ gap_s: field.valueAsNumber });
    else show();
  });
  const show = () => (field.value = String(project.view.settings.gap_s ?? 0));
  bus.on("project.meta", () => isDirty(field) || show());
}

/** Whether numbers, signs and abbreviations become words; projects from before that sound as they did. */
function connectWordsSetting(project) {
  const box = byId("says-words");
  box.addEventListener("change", () => project.editSettings({ says_words: box.checked }));
  bus.on("project.meta", () => (box.checked = Boolean(project.view.settings.says_words)));
}

/** The rows of the cast: name, voice, number of lines. */
export class CastPanel {
  #project;
  #speakers = [];
  #library = [];
  #choices = {};
  /** @type {EngineOffer | null} */
  #engine = null;
  #shown = null;
  #renamed = null;
  #opener = null;

  /** @param {import("../document/project.js").Project} project @param {CastOrder} order who speaks in which place */
  constructor(project, order) {
    this.#project = project;
    new ScriptLanguage(project);
    connectRetrySetting(project);
    connectGapSetting(project);
    connectWordsSetting(project);
    bus.on("project.meta", () => this.#show(order.speakers));
    bus.on("library.loaded", ({ speakers, offer }) => this.#know(speakers, offer));
    byId("cast-suggested").addEventListener("click", () => this.#useAll());
    byId("sample-panel").addEventListener("close", () => this.#returnFocus());
    bus.on("cast.voiceLeft", ({ name }) => this.#returnFocus(name && t`Voice for ${name}`));
  }

  /** @param {CastSpeaker[]} speakers of the dialog */
  #show(speakers) {
    const { cast, pronunciations } = this.#project.view;
    this.#speakers = speakers;
    this.#choices = Object.fromEntries(Object.entries(cast).map(([name, voice]) => [fold(name), voice ?? ""]));
    setText(byId("pronunciations-open-count"), pronunciations.length ? String(pronunciations.length) : "");
    this.#refresh();
  }

  #refresh() {
    const speakers = this.#speakers;
    const suggested = suggestVoices(speakers, this.#choices, this.#library, this.#engine, this.#project.view.characters);
    const names = this.#library.map(({ speaker_id: id, name }) => [id, name]);
    const shown = JSON.stringify([
      speakers, names, this.#choices, [...suggested], this.#engine?.builtin_voice, this.#project.view.characters,
    ]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const list = byId("cast");
    const held = list.contains(document.activeElement) ? controlName(focusedElement()) : null;
    list.replaceChildren(...speakers.map((speaker, at) => this.#row(speaker, suggested.get(speaker.name), at + 1)));
    setHidden(byId("cast-suggested"), suggested.size < 2);
    const label = held && [held, this.#renamed].find((one) => one && controlOf(list, one));
    if (label) shownOf(controlOf(list, label)).focus();
  }

  /** The button that opened the sample's panel may have been rebuilt while the panel was open. */
  #returnFocus(opener = this.#opener) {
    const control = opener && controlOf(byId("cast"), opener);
    this.#opener = null;
    const now = focusedElement();
    const isLost = now === document.body || now.closest("#sample-panel, #voice-picker") !== null;
    if (control && isLost) shownOf(control).focus();
  }

  /** @param {Voice[]} library the voices there are @param {EngineOffer} offer what the engine offers */
  #know(library, offer) {
    this.#library = library;
    this.#engine = offer;
    this.#refresh();
  }

  #row({ name, colour, lines, voice, voice_name: voiceName }, suggested, place) {
    const row = fromTemplate("cast-template");
    row.querySelector(".swatch").style.background = safeColour(colour);
    setText(row.querySelector(".voice-name"), name);
    if (place <= 9) row.querySelector(".voice-name").title = t`Ctrl+${place} or Alt+${place} assigns the selected lines to ${name}`;
    this.#offerLines(row.querySelector(".voice-mark"), name, formatCount(lines, "line"));
    this.#offerName(row, name);
    this.#offerVoice(row.querySelector(".voice-choice"), name, voice === "built-in" ? translateServer(voiceName) : voiceName);
    this.#offerSettings(row.querySelector(".voice-settings"), name);
    this.#offerSuggested(row.querySelector(".voice-suggest"), name, suggested);
    const add = row.querySelector(".voice-add");
    setHidden(add, voice !== "built-in" || Boolean(this.#choice(name)));
    add.ariaLabel = t`Set a voice for ${name}`;
    add.addEventListener("click", () => {
      this.#opener = add.ariaLabel;
      bus.emit("cast.sampleWanted", { name });
    });
    return row;
  }

  #offerLines(button, name, lines) {
    setText(button, lines);
    button.title = t`Select all lines of ${name}`;
    button.ariaLabel = t`${lines} of ${name}: select all`;
    button.addEventListener("click", () => bus.emit("cast.marked", { name }));
  }

  #offerSuggested(button, name, suggested) {
    setHidden(button, !suggested);
    if (!suggested) return;
    setText(button, t`Use ${suggested.label}`);
    button.ariaLabel = t`Use ${suggested.label} for ${name}`;
    button.addEventListener("click", () => {
      this.#use(name, suggested);
      announce(`${name}: ${suggested.label}.`);
    });
  }

  #use(name, suggested) {
    this.#project.edit(this.#opsFor(name, suggested));
  }

  /** @param {string} name @param {VoiceChoice} suggested @returns {Op[]} */
  #opsFor(name, { voice = null, preset = null }) {
    const speaker = this.#speakers.find((one) => one.name === name);
    const { backend } = this.#engine;
    return castOps(this.#project.view, speaker, preset ? `engine/${backend}/${preset}` : `library/${voice}`, backend);
  }

  #useAll() {
    const all = suggestVoices(this.#speakers, this.#choices, this.#library, this.#engine, this.#project.view.characters);
    this.#project.edit([...all].flatMap(([name, suggested]) => this.#opsFor(name, suggested)));
    announce(t`${formatCount(all.size, "voice")} assigned.`);
    this.#refresh();
  }

  /** Rename a speaker in all its lines, in a field in place of the name. */
  #offerName(row, name) {
    const part = (what) => row.querySelector(`.voice-${what}`);
    const field = part("rename-field");
    field.ariaLabel = t`New name of ${name}`;
    part("rename").ariaLabel = t`Rename ${name} in the script`;
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

  async #rename(from, to) {
    if (!to || to === from || (this.#isTaken(to, from) && !(await this.#asksToMerge(from, to)))) return;
    this.#renamed = t`Rename ${to} in the script`;
    this.#project.edit([{ op: "rename_speaker", from, to }]);
    announce(t`${from} renamed to ${to}.`);
  }

  #isTaken(name, from) {
    return fold(name) !== fold(from) && this.#speakers.some((one) => fold(one.name) === fold(name));
  }

  /** @returns {Promise<boolean>} whether two characters are to become one */
  async #asksToMerge(from, to) {
    const lines = this.#speakers.find(({ name }) => name === from)?.lines ?? 0;
    setText(byId("merge-confirm-title"), t`Merge ${from} with ${to}?`);
    setText(byId("merge-confirm-text"), t`There is a character of this name: ${formatCount(lines, "line")} will be said by ${to}.`);
    return (await askDialog(byId("merge-confirm"), "keep")) === "merge";
  }

  /** The voice chosen for a name, if the library still has it. */
  #choice(name) {
    const id = this.#choices[fold(name)];
    return this.#library.some((speaker) => speaker.speaker_id === id) ? id : "";
  }

  /** The name of the voice opens the picker. */
  #offerVoice(button, name, voice) {
    setText(button, voice || t`Choose a voice`);
    button.dataset.control = t`Voice for ${name}`;
    button.ariaLabel = t`Voice for ${name}: ${voice}`;
    button.title = t`Choose a voice by ear`;
    button.addEventListener("click", () => bus.emit("cast.voiceWanted", { name }));
  }

  #offerSettings(button, name) {
    button.ariaLabel = t`Settings of ${name}`;
    button.title = t`Speed, level, mood and more, for all its lines`;
    button.toggleAttribute("data-set", hasSettings(characterOf(this.#project.view, name)));
    button.addEventListener("click", () => bus.emit("cast.settingsWanted", { name }));
  }
}

/** @param {import("../core/types").Character} character */
function hasSettings({ params, level_db: level, gap_s: gap, pan }) {
  return Object.keys(params).length > 0 || level !== 0 || gap !== null || pan !== 0;
}

/** What a control is called that keeps the focus while rows are rebuilt. */
function controlName(control) {
  return control.dataset.control ?? control.ariaLabel;
}

/** A speaker with a sample needs no button for one: the focus moves to the choice next to it. */
function shownOf(control) {
  return control.hidden ? control.closest(".voice").querySelector(".voice-choice") : control;
}

/** Rebuild the rows; the focus stays on the control of the same name. */
function controlOf(list, label) {
  return [...list.querySelectorAll("button")].find((one) => controlName(one) === label);
}
