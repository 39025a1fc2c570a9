/** The panel of one voice: its samples by mood, previews, conversion of a recording, its details. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, languageOptions, safeColour, setHidden, setText } from "../core/dom.js";
import { fold, formatCount } from "../core/format.js";
import { localStore } from "../core/local_store.js";
import { announce, showDone, showError } from "../core/notices.js";
import { t } from "../core/texts.js";
import { Recorder } from "./recorder.js";
import { confirmRemoval, Sheet } from "./sheet.js";
import { presetLabel, VoiceDetails } from "./voice_details.js";
import { VoiceSamples } from "./voice_samples.js";

/** @import { EngineOffer, Voice } from "../core/types" */

/** Voice conversion: the user's recording of a line in a speaker's voice. */
export class VoiceConversion {
  #sheet;
  #source = new Recorder(byId("voice-act-source"), t`the line you perform`);
  #sound;
  #speaker = null;
  #made = null;
  #stop = null;

  /** @param {import("./sheet.js").Sheet} sheet @param {import("../playback/preview_button.js").PreviewButton} sound */
  constructor(sheet, sound) {
    this.#sheet = sheet;
    this.#sound = sound;
    this.#source.events.on("begin", () => sound.hush());
    this.#source.events.on("fault", (fault) => sheet.say(fault.message));
    this.#source.events.on("sound", ({ blob }) => this.#convert(blob));
    byId("voice-act-stop").addEventListener("click", () => this.#stop?.abort());
    const listen = byId("voice-act-listen");
    listen.addEventListener("click", () => sound.toggle(listen, () => this.#made));
  }

  /** Start again, for a speaker. */
  begin(speaker) {
    this.leave();
    this.#speaker = speaker;
  }

  /** Discard the recording and its conversion. */
  leave() {
    this.#source.leave();
    this.#stop?.abort();
    this.#show(null, "");
  }

  async #convert(recording) {
    this.#stop?.abort();
    const stop = (this.#stop = new AbortController());
    this.#sheet.say("");
    this.#show(null, t`Converting the line to this voice…`);
    setHidden(byId("voice-act-stop"), false);
    const id = this.#speaker.speaker_id;
    let made = null;
    await this.#sheet.tries(async () => (made = await api.convertVoice(id, recording, stop.signal)));
    if (stop !== this.#stop) return;
    this.#show(made, made ? t`The line is ready.` : "");
  }

  #show(made, state) {
    this.#sound.hush();
    this.#made = made;
    const save = byId("voice-act-save");
    if (save.href) URL.revokeObjectURL(save.href);
    save.removeAttribute("href");
    if (made) {
      save.href = URL.createObjectURL(made);
      save.download = `${this.#speaker.name.replace(/[^\p{L}\p{N} _-]/gu, "_")}.wav`;
    }
    setHidden(byId("voice-acted"), !made);
    setHidden(byId("voice-act-stop"), true);
    setText(byId("voice-act-state"), state);
  }
}

const SENTENCE_KEY = "tableread.sentence";

/** Emits "library.edited" after the voice was changed or removed. */
export class VoicePanel {
  #sheet = new Sheet(byId("voice-panel"));
  #details = new VoiceDetails();
  #project;
  #samples;
  #sound;
  #act;
  #speaker = null;
  /** Whether the last typed values were accepted. @type {Promise<boolean>} */
  #saving = Promise.resolve(true);
  #offer = null;
  #unfollow = () => {};
  #sentence = byId("voice-sentence");

  /**
   * @param {import("../document/project.js").Project} project
   * @param {import("../playback/preview_button.js").PreviewButton} sound @param {import('./sample_panel.js').SamplePanel} sample its panel
   */
  constructor(project, sound, sample) {
    this.#project = project;
    this.#sound = sound;
    this.#act = new VoiceConversion(this.#sheet, sound);
    this.#samples = new VoiceSamples(sound);
    this.#samples.events.on("request", (request) => this.#ask(request));
    this.#samples.events.on("mend", (kept) => sample.mend(this.#speaker, kept));
    this.#details.events.on("changed", () => this.#keep(this.#details.fresh));
    this.#details.events.on("save", () => this.#save());
    this.#sheet.events.on("closed", () => this.#left());
    this.#sentence.value =
      localStore.get(SENTENCE_KEY) ?? "The lamp is still burning, and nobody is home.";
    this.#sentence.addEventListener("input", () =>
      localStore.set(SENTENCE_KEY, this.#sentence.value),
    );
    byId("voice-preview").addEventListener("click", () => this.#preview());
    byId("voice-sample-add").addEventListener("click", () => sample.begin({ speaker: this.#speaker }));
    byId("voice-remove").addEventListener("click", () => this.#remove());
  }

  /** @param {{speakers: Voice[], offer: EngineOffer}} library the voices, and what the engine offers */
  #know({ speakers, offer }) {
    this.#offer = offer;
    this.#showOffer();
    const same = speakers.find(({ speaker_id: id }) => id === this.#speaker?.speaker_id);
    if (same && JSON.stringify(same) !== JSON.stringify(this.#speaker)) this.#show(same);
  }

  /** Open the panel of a voice. */
  open(speaker) {
    this.#offer = bus.latest("library.loaded")?.offer ?? null;
    this.#unfollow();
    this.#unfollow = bus.on("library.loaded", (library) => this.#know(library));
    this.#details.begin(speaker, this.#offer);
    this.#show(speaker);
    this.#act.begin(speaker);
    this.#showOffer();
    this.#sheet.open();
    byId("voice-title").focus();
  }

  /** Show an error in the panel, if it is open; returns whether it is. */
  tell(error) {
    if (this.#sheet.isOpen) this.#sheet.say(error.message);
    return this.#sheet.isOpen;
  }

  /** Update the panel after its voice changed. */
  refresh(speaker) {
    if (speaker.speaker_id === this.#speaker?.speaker_id) this.#show(speaker);
  }

  /** A sample was changed. */
  mended() {
    this.#sheet.say(t`Sample changed. Undo restores the previous recording.`, "done");
    byId("voice-title").focus();
  }

  #show(speaker) {
    this.#speaker = speaker;
    const { speaker_id: id, name, colour, samples } = speaker;
    setText(byId("voice-title"), name);
    byId("voice-panel").querySelector(".swatch").style.background = safeColour(colour);
    this.#samples.show(speaker);
    byId("voice-export").href = api.voiceUrl(id);
    this.#showMoods(name, samples);
    this.#details.show(speaker, this.#offer);
  }

  #showMoods(name, samples) {
    const moods = samples.map(({ mood }) => mood).filter(Boolean);
    const select = byId("voice-preview-mood");
    const chosen = select.value;
    select.replaceChildren(new Option(t`main`, ""), ...moods.map((mood) => new Option(mood, mood)));
    select.value = moods.includes(chosen) ? chosen : "";
    setHidden(select.closest("label"), moods.length === 0);
    setHidden(byId("voice-mood-hint"), samples.length === 0);
    setText(byId("voice-mood-example"), `[${name} | mood:${moods[0] ?? "angry"}] …`);
    this.#showOwn();
  }

  #showOwn() {
    const own = this.#speaker?.samples.length === 0;
    setText(byId("voice-own"), own ? describeOwnVoice(this.#speaker, this.#offer) : "");
    setHidden(byId("voice-own"), !own);
  }

  #showOffer() {
    if (!this.#offer) return;
    byId("voice-languages").replaceChildren(...languageOptions(this.#offer.languages));
    this.#details.offer(this.#offer);
    this.#showOwn();
    setHidden(byId("voice-act"), !this.#offer.voice_conversion);
  }

  get #id() {
    return this.#speaker.speaker_id;
  }

  #preview() {
    const body = { text: this.#sentence.value, mood: byId("voice-preview-mood").value || null };
    this.#sheet.say("");
    this.#sound.toggle(byId("voice-preview"), (signal) => api.previewVoice(this.#id, body, signal));
  }

  /** Save typed details, one request after the other; returns whether none was refused. */
  #keep(body) {
    if (!body || !this.#speaker) return this.#saving;
    const id = this.#id;
    const send = async () => {
      try {
        const speaker = await api.changeSpeaker(id, body);
        this.#details.taken(body);
        if (this.#speaker?.speaker_id === id) this.#show(speaker);
        announce(t`Saved.`);
        return true;
      } catch (error) {
        this.#details.refused(body);
        if (!this.tell(error)) showError(t`Couldn’t save the details of this voice`, error);
        return false;
      } finally {
        bus.emit("library.edited");
      }
    };
    this.#saving = this.#saving.then(send);
    return this.#saving;
  }

  async #save() {
    this.#sheet.say("");
    await this.#keep(this.#details.fresh);
    const left = this.#details.body;
    if (!left || (await this.#keep(left)) !== false) this.#sheet.say(t`Saved.`, "done");
  }

  async #ask({ act, said, focus }) {
    this.#sheet.say("");
    try {
      const speaker = await act();
      this.refresh(speaker);
      this.#sheet.say(said, "done");
      if (focus && this.#sheet.isOpen) byId(focus).focus();
    } catch (error) {
      this.#samples.refused();
      if (!this.tell(error)) showError(t`Couldn’t change the sample`, error);
    }
    bus.emit("library.edited");
  }

  /** Where a voice is used, as sentences: the lines here, and the other projects whose cast names it. */
  async #usesOf({ speaker_id: id, name }) {
    const { cast, speakers } = this.#project.view;
    const own = speakers.filter((one) => (cast[one.name] ? cast[one.name] === id : fold(one.name) === fold(name)));
    const lines = own.reduce((sum, one) => sum + one.lines, 0);
    const all = await api.listProjects().catch(() => []);
    const others = all.filter((one) => one.project_id !== this.#project.id && one.voices.includes(id)).length;
    if (!lines && !others) return "";
    return t`Used in ${formatCount(lines, "line")} here and in ${formatCount(others, "other project")}.`;
  }

  async #remove() {
    const speaker = this.#speaker;
    const { name, speaker_id: id } = speaker;
    const text = `${await this.#usesOf(speaker)} ${t`You can restore it for 30 days, under Removed voices.`}`.trim();
    if (this.#speaker?.speaker_id !== id) return; // the panel was left meanwhile
    confirmRemoval(t`Remove ${name}?`, text, async () => {
      if (await this.#sheet.tries(() => api.removeSpeaker(id))) {
        showDone(t`${name} removed.`, { label: t`Undo`, press: () => this.#restore(id) });
        if (this.#speaker?.speaker_id === id) this.#close();
      }
      bus.emit("library.edited");
    });
  }

  async #restore(id) {
    try {
      const { name } = await api.restoreSpeaker(id);
      showDone(t`${name} restored.`);
    } catch (error) {
      showError(t`Couldn’t restore this voice`, error);
    }
    bus.emit("library.edited");
  }

  #close() {
    this.#details.begin(this.#speaker, this.#offer); // discards typed text
    this.#sheet.close();
    byId("voice-new").focus();
  }

  #left() {
    this.#unfollow();
    if (this.#speaker) this.#keep(this.#details.fresh);
    this.#sound.hush();
    this.#act.leave();
    this.#speaker = null;
  }
}

/** The source of a voice without a sample. */
export function describeOwnVoice({ preset, description }, offer) {
  const manner = description && offer?.instructions ? `, ${description}` : "";
  if (preset) return t`Uses the engine voice ${offer ? presetLabel(offer, preset) : preset}${manner}.`;
  if (description) return t`Described voice: ${description}`;
  if (offer && !offer.builtin_voice) {
    return t`No recording yet, and ${offer.title} has no voice without one. ${remedy(offer)}`;
  }
  return t`No recording yet; uses an automatic voice. Add a recording of 5 to 20 seconds.`;
}

function remedy({ cloning, described_voices: described }) {
  if (cloning) return t`Add a recording of 5 to 20 seconds, or choose another voice engine.`;
  if (described) return t`Describe the voice in words, or choose another voice engine.`;
  return t`Choose one of the engine's voices, or another voice engine.`;
}
