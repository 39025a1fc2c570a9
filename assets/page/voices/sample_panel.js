/** The panel of a sample, new or existing: record or choose, trim, check, repair, preview, save. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, fromTemplate, setHidden, setText } from "../core/dom.js";
import { formatDecimal, formatLength } from "../core/format.js";
import { t, translateServer } from "../core/texts.js";
import { Recorder } from "./recorder.js";
import { SampleWords } from "./sample_words.js";
import { confirmRemoval, Sheet } from "./sheet.js";
import { TrimWave } from "./trim_wave.js";
import { fillPresets } from "./voice_details.js";

/** @import { Levels, PageEvents, UploadCheck } from "../core/types" */

const db = (value) => (value <= -119 ? t`silent` : t`${value.toFixed(0)} dB`);
const share = (value) => `${(100 * value).toFixed(value > 0 && value < 0.01 ? 2 : 0)} %`;

/** @type {Array<[string, (levels: Levels) => string]>} */
const ROWS = [
  [t`Speech level`, ({ speech_db: value }) => db(value)],
  [t`Background`, ({ noise_db: value }) => db(value)],
  [t`Signal-to-noise`, (levels) => t`${Math.max(0, levels.speech_db - levels.noise_db).toFixed(0)} dB`],
  [t`Peak`, ({ peak_db: value }) => db(value)],
  [t`Clipping`, ({ clipped_share: value }) => share(value)],
  [t`Speech`, ({ speech_share: value }) => share(value)],
];

/** @param {HTMLElement} table @param {UploadCheck} found `before` when repaired */
export function showFigures(table, { levels, before }) {
  const columns = before ? [before, levels] : [levels];
  setHidden(table.querySelector(".after"), !before);
  table.querySelector("tbody").replaceChildren(...ROWS.map(([name, show]) => figureRow(name, columns.map(show))));
}

function figureRow(name, values) {
  const made = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  setText(head, name);
  const cells = values.map((value) => {
    const cell = document.createElement("td");
    setText(cell, value);
    return cell;
  });
  made.append(head, ...cells);
  return made;
}

/** @param {HTMLElement} list @param {UploadCheck['problems']} problems what was found, the worst first */
export function showFound(list, problems) {
  const fine = { kind: "fine", sign: "✓", message: t`Good recording.` };
  const rows = problems.map(({ message, fatal, code }) =>
    foundRow({ kind: fatal ? "error" : "warning", sign: fatal ? "✕" : "!", message: translateServer(message), code }));
  list.replaceChildren(...(rows.length ? rows : [foundRow(fine)]));
}

function foundRow({ kind, sign, message, code = "" }) {
  const made = fromTemplate("found-template");
  Object.assign(made.dataset, { kind, code });
  setText(made.querySelector(".found-sign"), sign);
  setText(made.querySelector(".found-text"), message);
  return made;
}

const MOST_S = 60;

/** Emits "sample.kept" after a voice or a sample was added, or an existing sample was changed. */
export class SamplePanel {
  #sheet = new Sheet(byId("sample-panel"), () => this.#mayClose());
  #source = new Recorder(byId("sample-source"), t`the voice`);
  #wave = new TrimWave(byId("sample-wave"));
  #after = new TrimWave(byId("sample-wave-after"));
  #words = new SampleWords();
  #sound;
  #offer = null;
  #unfollow = () => {};
  #speaker = null;
  #kept = null;
  #upload = null;
  #asked = 0;
  #stop = null;
  #recorded = false;
  #reading = false;
  #duration_s = 0;

  /** @param {import("../playback/preview_button.js").PreviewButton} sound */
  constructor(sound) {
    this.#sound = sound;
    this.#sheet.events.on("closed", () => this.#left());
    this.#source.events.on("begin", () => sound.hush());
    this.#source.events.on("fault", (fault) => this.#sheet.say(fault.message));
    this.#source.events.on("sound", (recording) => this.#send(recording));
    this.#wave.events.on("moved", () => this.#showRange());
    this.#wave.events.on("changed", () => {
      this.#check();
      this.#words.listen(this.#upload, this.#cut());
    });
    for (const id of ["sample-repair", "sample-denoise"]) byId(id).addEventListener("click", () => this.#turn(id));
    byId("sample-kinds").addEventListener("change", () => this.#showKind());
    this.#hears("sample-listen", (signal) => api.readUploadAudio(this.#upload, this.#cut(), signal));
    this.#hears("sample-preview", (signal) => {
      const text = byId("sample-sentence").value;
      return api.previewUpload(this.#upload, { text, ...this.#cut() }, signal);
    });
    byId("sample-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#keep();
    });
  }

  /** Open for a new voice, or for one more sample of a `speaker`. */
  begin({ name = "", speaker = null, file = null }) {
    [this.#speaker, this.#kept] = [speaker, null];
    this.#clear();
    const title = speaker ? t`Set a voice for ${speaker.name}` : t`Add a voice`;
    this.#open(title, speaker ? t`Add this sample` : t`Add this voice`);
    setHidden(byId("sample-mood-label"), !speaker?.samples.length);
    byId("speaker-name").value = name;
    if (speaker || name) this.#source.focus();
    else byId("speaker-name").focus();
    if (file) this.#send({ blob: file, name: file.name });
  }

  /** Open for a sample of `speaker`, which doesn't change until the edit is saved. */
  async mend(speaker, sample) {
    [this.#speaker, this.#kept] = [speaker, sample];
    this.#clear();
    this.#open(t`Trim or clean up the ${sample.mood ?? t`main`} sample of ${speaker.name}`, t`Keep the change`);
    setHidden(byId("sample-mood-label"), true);
    byId("sample-transcript").value = sample.transcript ?? "";
    await this.#read(t`The sample`, (signal) => api.openSample(speaker.speaker_id, sample.sample_id, signal));
    if (this.#upload) byId("sample-listen").focus();
  }

  #open(title, act) {
    this.#offer = bus.latest("library.loaded")?.offer ?? null;
    this.#unfollow();
    this.#unfollow = bus.on("library.loaded", ({ offer }) => {
      this.#offer = offer;
      this.#showOffer();
    });
    setText(byId("sample-title"), title);
    setText(byId("speaker-add"), act);
    setHidden(byId("sample-new"), Boolean(this.#speaker));
    setHidden(byId("sample-language-label"), Boolean(this.#speaker));
    for (const id of ["sample-source", "sample-consent-label"]) setHidden(byId(id), Boolean(this.#kept));
    this.#showOffer();
    this.#showKind();
    this.#sheet.open();
  }

  /** Show an error in the panel, if it is open; returns whether it is. */
  tell(error) {
    if (this.#sheet.isOpen) this.#sheet.say(error.message);
    return this.#sheet.isOpen;
  }

  get #kind() {
    if (this.#speaker) return "sample";
    return byId("sample-kinds").querySelector("input:checked").value;
  }

  #clear() {
    for (const id of ["sample-mood", "sample-language", "sample-transcript", "sample-description"]) {
      byId(id).value = "";
    }
    byId("sample-manner").value = "";
    byId("sample-consent").checked = false;
    byId("sample-sentence").value = byId("voice-sentence").value;
    byId("sample-kinds").querySelector("[value=sample]").checked = true;
    this.#unpress();
    setHidden(byId("sample-editor"), true);
    setText(byId("sample-state"), "");
  }

  #showOffer() {
    if (!this.#offer) return;
    const { presets, described_voices: described, cloning } = this.#offer;
    const offered = { preset: presets.length > 0, described };
    for (const radio of byId("sample-kinds").querySelectorAll("input")) {
      setHidden(radio.closest("label"), offered[radio.value] === false);
    }
    setHidden(byId("sample-denoise"), !this.#offer.denoising);
    fillPresets(byId("sample-preset"), presets, byId("sample-preset").value || null, "");
    const { title, instead_of_sample: instead } = this.#offer;
    setText(byId("sample-clones"), t`${title} can’t clone a recording; ${translateServer(instead)} will speak instead. Another voice engine can clone it later.`);
    setHidden(byId("sample-clones"), cloning);
  }

  #showKind() {
    const kind = this.#kind;
    for (const part of byId("sample-form").querySelectorAll("[data-kind]")) {
      setHidden(part, part.dataset.kind !== kind);
    }
    if (!this.#offer?.instructions) setHidden(byId("sample-manner").closest("label"), true);
    this.#sheet.say("");
  }

  async #send({ blob, name }) {
    const read = await this.#read(`“${name}”`, (signal) => api.uploadRecording(blob, name, signal));
    if (read) this.#recorded = !(blob instanceof File);
  }

  /** Upload a recording and show its check; the previous one stays until then. */
  async #read(what, send) {
    this.#sound.hush();
    this.#stop?.abort();
    const stop = (this.#stop = new AbortController());
    this.#asked += 1;
    const state = this.#upload ? byId("sample-state").textContent : "";
    this.#reading = true;
    byId("sample-editor").setAttribute("aria-busy", "true");
    this.#sheet.say("");
    setText(byId("sample-state"), t`Reading ${what}…`);
    let found = null;
    await this.#sheet.tries(async () => (found = await send(stop.signal)));
    if (stop !== this.#stop) {
      if (found) api.dropUpload(found.upload_id);
      return false;
    }
    this.#reading = false;
    byId("sample-editor").removeAttribute("aria-busy");
    setText(byId("sample-state"), found ? `${what}, ${formatLength(found.duration_s)}` : state);
    if (found) this.#edit(found);
    return Boolean(found);
  }

  /** Ask before a recording from the microphone is discarded. */
  #mayClose() {
    const [start, end] = this.#upload ? this.#wave.range : [0, 0];
    const words = this.#words.isWritten || byId("sample-mood").value.trim();
    const worked = words || isPressed("sample-repair") || isPressed("sample-denoise") || start > 0 || end < Math.min(this.#duration_s, MOST_S);
    if (!this.#upload || this.#kept || !(this.#recorded || worked)) return true;
    const text = this.#recorded
      ? t`You recorded it here, and it isn’t saved anywhere else.`
      : t`Your trim and text will be lost; the file itself stays where it is.`;
    confirmRemoval(t`Close without this recording?`, text, () => this.#sheet.close());
    return false;
  }

  #edit(found) {
    this.#forget();
    this.#upload = found.upload_id;
    this.#duration_s = found.duration_s;
    this.#unpress();
    setHidden(byId("sample-editor"), false);
    this.#wave.show(found.outline, found.duration_s, MOST_S);
    this.#showRange();
    this.#showFound(found);
    if (found.duration_s > MOST_S) this.#check();
    this.#words.listen(this.#upload, this.#cut());
  }

  #unpress() {
    for (const id of ["sample-repair", "sample-denoise"]) byId(id).setAttribute("aria-pressed", "false");
  }

  #cut() {
    const [start, end] = this.#wave.range;
    return { start_s: start, end_s: end, repaired: isPressed("sample-repair"), denoised: isPressed("sample-denoise") };
  }

  async #turn(id) {
    const pressed = !isPressed(id);
    byId(id).setAttribute("aria-pressed", String(pressed));
    if ((await this.#check()) === false) byId(id).setAttribute("aria-pressed", String(!pressed));
  }

  /** @returns {Promise<boolean | null>} whether it could be done; null if something else was asked meanwhile */
  async #check() {
    this.#sound.hush();
    const asked = (this.#asked += 1);
    byId("sample-editor").setAttribute("aria-busy", "true");
    let found = null;
    await this.#sheet.tries(async () => (found = await api.checkUpload(this.#upload, this.#cut())));
    if (asked !== this.#asked) return null;
    byId("sample-editor").removeAttribute("aria-busy");
    if (found) this.#showFound(found);
    return Boolean(found);
  }

  #showRange() {
    const [start, end] = this.#wave.range;
    setText(byId("sample-range"), t`${formatDecimal(start, 2)} to ${formatLength(end)}, ${formatLength(end - start)} long`);
  }

  #showFound(found) {
    setHidden(byId("sample-repaired"), !found.before);
    if (found.before) this.#after.show(found.outline, found.part_s);
    const steps = found.steps.length ? found.steps.map(translateServer).join(", ") : t`nothing to fix`;
    setText(byId("sample-steps"), t`Cleaned up to ${formatLength(found.part_s)}: ${steps}.`);
    showFigures(byId("sample-figures"), found);
    showFound(byId("sample-problems"), found.problems);
  }

  #hears(id, find) {
    byId(id).addEventListener("click", () => {
      this.#sheet.say("");
      this.#sound.toggle(byId(id), find);
    });
  }

  async #keep() {
    this.#sheet.say("");
    if (this.#upload && this.#reading) {
      return this.#sheet.say(t`Still reading the recording. Wait a moment.`);
    }
    if (this.#upload && !this.#kept && this.#kind === "sample" && !byId("sample-consent").checked) {
      byId("sample-consent").focus();
      return this.#sheet.say(t`Please confirm that you have the right to use this voice.`);
    }
    const button = byId("speaker-add");
    button.disabled = true;
    await this.#sheet.tries(async () => {
      const kept = await (this.#kept ? this.#putBack() : this.#add());
      if (this.#kind === "sample") this.#upload = null;
      this.#sheet.close();
      bus.emit("sample.kept", kept);
    });
    button.disabled = false;
    return undefined;
  }

  /** @returns {Promise<PageEvents['sample.kept']>} */
  async #add() {
    const body = this.#body();
    if (!this.#speaker) return { speaker: await api.addSpeaker(body), made: "voice" };
    return { speaker: await api.addSample(this.#speaker.speaker_id, body), made: "sample" };
  }

  /** The studio keeps the previous recording, so that it can be restored. @returns {Promise<PageEvents['sample.kept']>} */
  async #putBack() {
    if (!this.#upload) throw new Error(t`Still reading the sample. Wait a moment, or close this panel.`);
    const { sample_id: sampleId } = this.#kept;
    const transcript = byId("sample-transcript").value.trim() || null;
    const mended = { upload_id: this.#upload, transcript, ...this.#cut() };
    const speaker = await api.replaceRecording(this.#speaker.speaker_id, sampleId, mended);
    return { speaker, made: "mended" };
  }

  /** The values of the form, as a request body. */
  #body() {
    if (this.#speaker) return this.#taken();
    const name = byId("speaker-name").value;
    const kind = this.#kind;
    const manner = this.#offer?.instructions ? byId("sample-manner").value.trim() || null : null;
    if (kind === "preset") return { name, preset: byId("sample-preset").value, description: manner };
    if (kind === "described") return { name, description: this.#described() };
    if (kind === "built-in") return { name };
    return { name, language: byId("sample-language").value.trim() || null, sample: this.#taken() };
  }

  #described() {
    const text = byId("sample-description").value.trim();
    if (!text) throw new Error(t`Describe the voice in a few words.`);
    return text;
  }

  #taken() {
    if (!this.#upload) throw new Error(t`Choose or record the voice first.`);
    return {
      upload_id: this.#upload,
      consent: byId("sample-consent").checked,
      mood: this.#speaker?.samples.length ? byId("sample-mood").value : null,
      transcript: byId("sample-transcript").value.trim() || null,
      ...this.#cut(),
    };
  }

  #left() {
    this.#unfollow();
    this.#source.leave();
    this.#sound.hush();
    this.#stop?.abort();
    this.#stop = null;
    [this.#recorded, this.#reading] = [false, false];
    byId("sample-editor").removeAttribute("aria-busy");
    this.#forget();
  }

  /** Delete an unsaved recording; the studio would do so itself after a while. */
  #forget() {
    this.#asked += 1;
    this.#words.leave();
    if (this.#upload) api.dropUpload(this.#upload).catch(() => null);
    this.#upload = null;
  }
}

function isPressed(id) {
  return byId(id).getAttribute("aria-pressed") === "true";
}
