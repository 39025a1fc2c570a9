/** The panel of one voice: its samples by mood, hearing it, its details, taking it along. */
import { VoiceAct } from "./voiceact.js";
import * as api from "./voiceapi.js";
import { byId, fromTemplate, safeColour, setHidden, setText } from "./dom.js";
import { length } from "./format.js";
import { VoiceSheet } from "./voicesheet.js";
import { stored } from "./stored.js";

const SENTENCE_KEY = "tableread.sentence";
const CONSENT = "I may use this voice: it is mine, or its owner agreed to have it cloned.";

/** Event "changed" after the voice was changed or removed. */
export class VoicePanel extends EventTarget {
  #sheet = new VoiceSheet(/** @type {HTMLDialogElement} */ (byId("voice-panel")));
  #sound;
  #act;
  #speaker = null;
  #formers = new Map();
  #sample;
  #offer = null;
  #sentence = /** @type {HTMLTextAreaElement} */ (byId("voice-sentence"));

  /** @param {import("./voicesound.js").VoiceSound} sound @param {object} sample its panel */
  constructor(sound, sample) {
    super();
    this.#sound = sound;
    this.#sample = sample;
    this.#act = new VoiceAct(this.#sheet, sound);
    this.#sheet.addEventListener("closed", () => this.#left());
    this.#sentence.value =
      stored.get(SENTENCE_KEY) ?? "The lamp is still burning, and nobody is home.";
    this.#sentence.addEventListener("input", () =>
      stored.set(SENTENCE_KEY, this.#sentence.value),
    );
    byId("voice-preview").addEventListener("click", () => this.#preview());
    byId("voice-sample-add").addEventListener("click", () => sample.begin({ speaker: this.#speaker }));
    byId("voice-remove").addEventListener("click", () => this.#remove());
    byId("voice-details").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
  }

  /** @param {Array<object>} speakers the library @param {object} offer what the engine can do */
  know(speakers, offer) {
    this.#offer = offer;
    this.#showOffer();
    const same = speakers.find(({ speaker_id: id }) => id === this.#speaker?.speaker_id);
    const changed = same && JSON.stringify(same) !== JSON.stringify(this.#speaker);
    if (changed && !byId("voice-panel").contains(document.activeElement)) this.#show(same);
  }

  /** Open the panel of a voice. */
  open(speaker) {
    this.#show(speaker);
    this.#act.begin(speaker);
    this.#showOffer();
    this.#sheet.open();
    byId("voice-title").focus();
  }

  /** Say a fault in the panel when it is open; whether it was. */
  tell(error) {
    if (this.#sheet.isOpen) this.#sheet.say(error.message);
    return this.#sheet.isOpen;
  }

  /** Show what became of the voice whose panel is open. */
  refresh(speaker) {
    if (speaker.speaker_id === this.#speaker?.speaker_id) this.#show(speaker);
  }

  /** A kept sample was mended. @param {object} former {sampleId, upload_id, transcript}: how it was */
  mended(former) {
    this.#formersOf(former.sampleId).push(former);
    this.#show(this.#speaker);
    this.#sheet.say("The sample is changed. Undo brings the former recording back.", "done");
    byId("voice-title").focus();
  }

  /** How a sample of this voice was before each change since the page was opened. */
  #formersOf(sampleId) {
    const key = `${this.#id}/${sampleId}`;
    if (!this.#formers.has(key)) this.#formers.set(key, []);
    return this.#formers.get(key);
  }

  #show(speaker) {
    this.#speaker = speaker;
    const { speaker_id: id, name, colour, samples } = speaker;
    setText(byId("voice-title"), name);
    byId("voice-panel").querySelector(".swatch").style.background = safeColour(colour);
    byId("voice-samples").replaceChildren(...samples.map((sample) => this.#sampleRow(sample)));
    byId("voice-export").href = api.voiceUrl(id);
    this.#showMoods(name, samples);
    this.#fill(speaker);
  }

  #showMoods(name, samples) {
    const moods = samples.map(({ mood }) => mood).filter(Boolean);
    const select = byId("voice-preview-mood");
    const chosen = select.value;
    select.replaceChildren(new Option("main", ""), ...moods.map((mood) => new Option(mood, mood)));
    select.value = moods.includes(chosen) ? chosen : "";
    setHidden(select.closest("label"), moods.length === 0);
    setHidden(byId("voice-mood-hint"), samples.length === 0);
    setText(byId("voice-mood-example"), `[${name} | mood:${moods[0] ?? "angry"}] …`);
    setText(byId("voice-own"), samples.length ? "" : ownVoice(this.#speaker));
    setHidden(byId("voice-own"), samples.length > 0);
  }

  #fill({ name, language, tags, colour, preset, description }) {
    byId("voice-name").value = name;
    byId("voice-language").value = language ?? "";
    byId("voice-labels").value = tags.join(", ");
    byId("voice-colour").value = safeColour(colour);
    byId("voice-description").value = description ?? "";
    this.#showPresets(preset);
  }

  #showOffer() {
    if (!this.#offer) return;
    const languages = Object.entries(this.#offer.languages);
    byId("voice-languages").replaceChildren(
      ...languages.map(([code, name]) => new Option(name, code)),
    );
    this.#showPresets(this.#speaker?.preset);
    const described = this.#offer.described_voices || Boolean(this.#speaker?.description);
    setHidden(byId("voice-description").closest("label"), !described);
    setHidden(byId("voice-act"), !this.#offer.voice_conversion);
  }

  #showPresets(chosen) {
    const presets = this.#offer?.presets ?? [];
    fillPresets(byId("voice-preset"), presets, chosen, "none: the sample, or left to the engine");
    setHidden(byId("voice-preset").closest("label"), presets.length === 0 && !chosen);
  }

  #sampleRow({ sample_id: sampleId, mood, seconds, transcript, consent_at: consent }) {
    const row = fromTemplate("sample-template");
    const what = mood ?? "main";
    const part = (name) => row.querySelector(`.sample-${name}`);
    const change = (body) => this.#do(() => api.changeSample(this.#id, sampleId, body));
    setHidden(part("main"), mood !== null);
    setHidden(part("mood"), mood === null);
    setText(part("length"), seconds === null ? "missing" : length(seconds));
    part("mood").value = mood ?? "";
    part("mood").ariaLabel = `Mood of the ${what} sample`;
    part("mood").addEventListener("change", () => change({ mood: part("mood").value }));
    part("transcript").value = transcript ?? "";
    part("transcript").ariaLabel = `What is said in the ${what} sample`;
    part("transcript").addEventListener("change", () =>
      change({ transcript: part("transcript").value.trim() || null }),
    );
    part("consent").checked = Boolean(consent);
    setText(part("consent-text"), consent ? `${CONSENT} (Ticked on ${day(consent)}.)` : CONSENT);
    part("consent").addEventListener("change", () => change({ consent: part("consent").checked }));
    part("listen").ariaLabel = `Listen to the ${what} sample`;
    part("listen").addEventListener("click", () =>
      this.#sound.toggle(part("listen"), () => api.sampleUrl(this.#id, sampleId)),
    );
    part("mend").ariaLabel = `Trim or repair the ${what} sample`;
    part("mend").addEventListener("click", () => {
      const sample = this.#speaker.samples.find((one) => one.sample_id === sampleId);
      this.#sample.mend(this.#speaker, sample);
    });
    part("undo").ariaLabel = `Undo the change of the ${what} sample`;
    setHidden(part("undo"), this.#formersOf(sampleId).length === 0);
    part("undo").addEventListener("click", () => this.#undoMending(sampleId, what));
    part("remove").ariaLabel = `Remove the ${what} sample`;
    part("remove").addEventListener("click", () => this.#removeSample(sampleId, what));
    return row;
  }

  get #id() {
    return this.#speaker.speaker_id;
  }

  #preview() {
    const body = { text: this.#sentence.value, mood: byId("voice-preview-mood").value || null };
    this.#sheet.say("");
    this.#sound.toggle(byId("voice-preview"), (signal) => api.preview(this.#id, body, signal));
  }

  #save() {
    const body = {
      name: byId("voice-name").value,
      language: byId("voice-language").value.trim() || null,
      tags: written(byId("voice-labels").value),
      colour: byId("voice-colour").value,
      preset: byId("voice-preset").value || null,
      description: byId("voice-description").value.trim() || null,
    };
    return this.#do(() => api.changeSpeaker(this.#id, body), "Saved.");
  }

  async #do(act, done = "") {
    this.#sheet.say("");
    const fine = await this.#sheet.tries(async () => this.#show(await act()));
    if (fine) this.#sheet.say(done, "done");
    else if (this.#speaker) this.#show(this.#speaker);
    this.dispatchEvent(new Event("changed"));
  }

  async #undoMending(sampleId, what) {
    const formers = this.#formersOf(sampleId);
    const { upload_id, transcript } = formers.at(-1);
    await this.#do(async () => {
      const speaker = await api.putBack(this.#id, sampleId, { upload_id, transcript });
      formers.pop();
      return speaker;
    }, `The ${what} sample is as it was.`);
    byId("voice-title").focus();
  }

  #removeSample(sampleId, what) {
    const { name } = this.#speaker;
    ask(`Remove the ${what} sample of ${name}?`, "The recording is deleted.", async () => {
      await this.#do(() => api.removeSample(this.#id, sampleId));
      byId("voice-sample-add").focus();
    });
  }

  #remove() {
    const { name, speaker_id: id } = this.#speaker;
    const text = "The recordings are deleted. Lines of this name are read with the built-in voice.";
    ask(`Remove ${name}?`, text, async () => {
      if (await this.#sheet.tries(() => api.removeSpeaker(id))) this.#sheet.close();
      this.dispatchEvent(new Event("changed"));
    });
  }

  #left() {
    this.#sound.hush();
    this.#act.leave();
    this.#speaker = null;
  }
}

/** Offer a backend's own voices; one that it hasn't stays as it is. */
export function fillPresets(select, presets, chosen, none) {
  const options = presets.map(({ preset_id: id, label }) => new Option(label, id));
  const known = !chosen || presets.some(({ preset_id: id }) => id === chosen);
  if (!known) options.push(new Option(`${chosen} (of another engine)`, chosen));
  if (none) options.unshift(new Option(none, ""));
  select.replaceChildren(...options);
  select.value = chosen ?? options[0]?.value ?? "";
}

/** Tags as they are typed, with commas between them. */
export function written(text) {
  return text.split(",").map((tag) => tag.trim()).filter(Boolean);
}

function ownVoice({ preset, description }) {
  if (preset) return `It has no sample and speaks with the engine's voice ${preset}.`;
  if (description) return `It has no sample and is described: ${description}`;
  return "It has no sample and is read with the engine's built-in voice. Add a recording of 5 to 20 seconds.";
}

function day(iso) {
  return new Date(iso).toLocaleDateString(undefined, { dateStyle: "medium" });
}

function ask(title, text, act) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("confirm"));
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  dialog.returnValue = "keep";
  dialog.onclose = () => dialog.returnValue === "remove" && act();
  dialog.showModal();
}
