/** Voices that somebody adds to Piper and Kokoro: by their files, or public ones by a press, language by language. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { arrangeRows, byId, setHidden, setText } from "../core/dom.js";
import { fold, formatCount, languageName } from "../core/format.js";
import { showDone, showError } from "../core/notices.js";
import { pageLanguage, t } from "../core/texts.js";

const QUALITIES = { x_low: t`Very low quality`, low: t`Low quality`, medium: t`Medium quality`, high: t`High quality` };
const BOUND = /\bNC\b|for research/;

export const isVoiceFile = ({ name }) => /\.(onnx|onnx\.json|npz|bin)$/i.test(name);

export class VoiceFiles {
  #card;
  /** The folds of languages, which stay open. @type {Map<string, HTMLDetailsElement>} */
  #folds = new Map();
  #listed = { own: {}, public: [] };
  #state = { backends: [], downloads: {}, setup: {} };
  #known = "";
  #sending = Promise.resolve();

  /** @param {(voice: any, now: any) => Element} card shows a voice as the card of an engine */
  constructor(card) {
    this.#card = card;
    const field = byId("voice-files-field");
    byId("voice-files").addEventListener("toggle", () => this.#read());
    byId("voice-files-search").addEventListener("input", () => this.#show());
    byId("voice-files-choose").addEventListener("click", () => field.click());
    field.addEventListener("change", () => this.#add([...field.files]));
    bus.on("voices.brought", (files) => {
      if (byId("model-panel").hidden) byId("model-chip").click();
      byId("voice-files").open = true;
      this.#add(files);
    });
  }

  show(state) {
    this.#state = state;
    const known = JSON.stringify([state.backends.map(({ presets }) => presets), Object.keys(state.downloads)]);
    if (known === this.#known) return this.#show();
    this.#known = known;
    return this.#read();
  }

  async #read() {
    if (!byId("voice-files").open) return;
    try {
      this.#listed = await api.listVoiceFiles();
      this.#show();
    } catch (error) {
      showError(t`Couldn’t list the voices`, error);
    }
  }

  #show() {
    const { own, public: voices } = this.#listed;
    const about = (file) => (own[file] ? `${languageName(own[file][0])}, ${formatCount(own[file][1], "voice")}` : file.endsWith(".onnx") ? t`Not a Piper voice` : "Kokoro");
    arrangeRows(byId("voice-files-own"), Object.keys(own).map((file) => this.#voice({ name: file, title: file, removable: true }, about(file))));
    const wanted = fold(byId("voice-files-search").value);
    const languages = [...new Set(voices.map(({ language }) => language))].map((code) => ({ code, name: languageName(code) }));
    const found = languages.filter(({ name }) => fold(name).includes(wanted));
    arrangeRows(byId("voice-files-public"), found.toSorted((one, other) => one.name.localeCompare(other.name, pageLanguage)).map((one) => this.#language(one)));
  }

  #language({ name, code }) {
    const among = this.#listed.public.filter(({ language }) => language === code);
    const element = this.#folds.get(code) ?? document.createElement("details");
    if (!element.firstChild) element.append(document.createElement("summary"), document.createElement("div"));
    this.#folds.set(code, element);
    setText(element.firstChild, `${name} (${among.length})`);
    arrangeRows(element.lastChild, among.map((voice) => this.#public(voice)));
    return element;
  }

  #public({ title: name, quality, speakers, licence, size_bytes: bytes }) {
    const isHere = `${name}.onnx` in this.#listed.own;
    const title = name.split("-")[1].replace(/(?:^|_)(.)/gu, (_, letter) => ` ${letter.toUpperCase()}`).trim();
    const words = { title, summary: QUALITIES[quality], code_licence: licence === "not stated" ? t`not stated` : licence };
    const card = { name, downloadable: true, to_fetch: !isHere, download_bytes: bytes, non_commercial: BOUND.test(licence) };
    return this.#voice({ ...card, ...words }, isHere ? t`On this machine` : speakers > 1 ? formatCount(speakers, "voice") : "");
  }

  #voice(card, use) {
    const { downloads, setup } = this.#state;
    return this.#card(card, { chosen: false, download: downloads[card.name], setup, speed: "", use });
  }

  #add(files) {
    byId("voice-files-field").value = ""; // so that the same file can be chosen again
    this.#sending = this.#sending.then(() => this.#send(files));
  }

  async #send(files) {
    const [row, stop] = [byId("voice-files-sending"), new AbortController()];
    const [bar, button] = row.children;
    // Once all is sent, nobody knows how long the voice is tried.
    const tell = (share) => (share < 1 ? (bar.value = share) : bar.removeAttribute("value"));
    button.onclick = () => stop.abort();
    setHidden(row, false);
    try {
      const added = await api.addVoiceFiles(files, tell, stop.signal);
      showDone(t`${files[0].name} added: ${formatCount(added.length, "voice")}.`);
    } catch (error) {
      if (!stop.signal.aborted) showError(t`Couldn’t add ${files[0].name}`, error);
    }
    setHidden(row, true);
    await this.#read();
  }
}
