/** The cards of voice engines and of what listens: what each is and does here, and to download, try and remove it. */
import * as api from "../core/api.js";
import { arrangeRows, askDialog, byId, fromTemplate, setData, setHidden, setText } from "../core/dom.js";
import { formatBytes, formatCount, languageName } from "../core/format.js";
import { showError } from "../core/notices.js";
import { pageLanguage, t, translateServer } from "../core/texts.js";
import { PreviewButton } from "../playback/preview_button.js";
import { cardRank, countDown, hearsWords, licenceWords, listeningWords, speedWords, useWords, voiceWords } from "./engine_state.js";
import { VoiceFiles } from "./voice_files.js";

/** @import { EngineCard, EngineDownload, RecogniserCard, SetupState, StudioState } from "../core/types" */

const MOST_CHARS = 200;
const SHOWN_LANGUAGES = 3;
/** What an engine says where the scene has no line. */
const SAMPLE = { speaker: "Narrator", text: "The lamp is still burning, and nobody is home." };

/** One engine's card, or that of a model that listens; its element stays, so that a focused button keeps its focus. */
class Card {
  /** @param {string} name @param {(act: string, card: Card) => void} press @param {boolean} speaks whether it is an engine */
  constructor(name, press, speaks) {
    this.name = name;
    this.speaks = speaks;
    this.root = fromTemplate("backend-template");
    setData(this.root, "engine", name);
    this.choice = this.root.querySelector("input");
    this.choice.value = name;
    this.choice.addEventListener("change", () => press("choose", this));
    if (!speaks) this.choice.remove(); // which one listens follows from the languages
    for (const button of this.root.querySelectorAll("[data-act]")) {
      button.addEventListener("click", () => press(button.dataset.act, this));
    }
  }

  part(name) {
    return this.root.querySelector(`.backend-${name}`);
  }

  act(name) {
    return this.root.querySelector(`[data-act=${name}]`);
  }

  /** @param {EngineCard} engine @param {{chosen: boolean, download: EngineDownload | undefined, setup: SetupState, speed: string, use: string}} now */
  show(engine, { chosen, download, setup, speed, use }) {
    this.engine = engine;
    this.choice.checked = chosen;
    this.choice.disabled = Boolean(engine.reason);
    this.choice.setAttribute("aria-label", engine.title);
    setText(this.part("title"), engine.title);
    this.showSpeed(speed);
    setHidden(this.part("warning"), !engine.non_commercial);
    setText(this.part("summary"), translateServer(engine.summary ?? ""));
    setText(this.part("voices"), use);
    setText(this.part("licence"), licenceWords(engine, this.speaks));
    this.#showLanguages(pageLanguage === "en" || !this.speaks ? engine.languages ?? [] : nameLanguages(engine.language_codes));
    const needsPrograms = Boolean(engine.large_packages && engine.reason);
    setText(this.part("note"), note(engine, { download, setup, needsPrograms }));
    const failed = download?.state === "failed" || (needsPrograms && setup.state === "failed");
    setData(this.part("note"), "failed", String(failed));
    this.#showProgress(download, needsPrograms && setup.state === "installing" ? setup : null);
    this.#showActs({ chosen, download, setup, needsPrograms });
  }

  /** @param {string} words */
  showSpeed(words) {
    setText(this.part("speed"), words);
  }

  #showLanguages(languages) {
    const list = this.part("languages");
    setHidden(list, !languages.length);
    const few = languages.length <= SHOWN_LANGUAGES;
    setText(list.querySelector("summary"), few ? languages.join(", ") : formatCount(languages.length, "language"));
    setText(list.querySelector("p"), few ? "" : languages.join(", "));
    setData(list, "few", String(few));
  }

  #showProgress(download, setup) {
    const bar = this.part("progress");
    const work = download ?? setup;
    setHidden(bar, !work || download?.state === "failed");
    if (!work) return;
    bar.setAttribute("aria-label", download ? t`Download of ${this.engine.title}` : t`Installation of ${this.engine.title}`);
    if (work.fraction === null) bar.removeAttribute("value");
    else bar.value = work.fraction;
  }

  #showActs({ chosen, download, setup, needsPrograms }) {
    const { reason, to_fetch: toFetch, download_bytes: bytes, downloadable, removable } = this.engine;
    const runs = download?.state === "running" || download?.state === "stopping";
    const installs = needsPrograms && setup.state === "installing";
    const size = bytes && !download ? ` (${formatBytes(bytes)})` : "";
    const resumes = download?.state === "paused";
    const packages = t`Install (${formatBytes(setup.download_bytes ?? 0)})`;
    setText(this.act("install"), setup.state === "failed" ? t`Try again` : packages);
    setHidden(this.act("install"), !needsPrograms || installs || !setup.download_bytes);
    setText(this.act("download"), resumes ? t`Resume` : download ? t`Try again` : t`Download${size}`);
    setHidden(this.act("download"), !downloadable || Boolean(reason) || !toFetch || runs);
    setHidden(this.act("pause"), !runs && !installs);
    setHidden(this.act("cancel"), !download);
    for (const act of ["pause", "cancel"]) this.act(act).disabled = download?.state === "stopping";
    setHidden(this.act("try"), !this.speaks || Boolean(reason || toFetch));
    setHidden(this.act("remove"), !removable || Boolean(download));
    this.act("remove").disabled = chosen;
    this.act("remove").title = chosen ? t`Choose another voice engine first` : "";
    for (const button of this.root.querySelectorAll("[data-act]")) {
      button.setAttribute("aria-label", `${button.textContent}: ${this.engine.title}`);
    }
  }
}

/** What stands in a card's way, or how far its download is. */
function note({ needs, reason, summary, to_fetch: toFetch, untried }, { download, setup, needsPrograms }) {
  if (download) return download.state === "paused" ? t`Paused. ${translateServer(download.message)}` : translateServer(download.message);
  if (needsPrograms && ["installing", "failed"].includes(setup.state)) return setup.message;
  if (needsPrograms && setup.download_bytes) return t`Install its packages first. ${translateServer(needs)}`.trim();
  if (needsPrograms) return t`This studio was started without the packages it needs. See the installation guide.`;
  // An engine without words of its own says itself what it lacks, in those of the terminal.
  return [needs || reason || (summary ? "" : toFetch), untried].filter(Boolean).map(translateServer).join(" ");
}

/** @param {string[]} codes of languages @returns {string[]} their names, in their order */
function nameLanguages(codes) {
  const names = new Set(codes.map((code) => languageName(code)));
  return [...names].toSorted((one, other) => one.localeCompare(other, pageLanguage));
}

/** @param {string[]} codes of languages @returns {string} their names, or how many they are */
function nameOrCount(codes) {
  return codes.length <= SHOWN_LANGUAGES ? nameLanguages(codes).join(", ") : formatCount(codes.length, "language");
}

/** What the card of a model that listens shares with an engine's. @param {RecogniserCard} recogniser @returns {any} */
function asCard(recogniser) {
  return { ...recogniser, languages: nameLanguages(recogniser.languages), downloadable: true };
}

export class EngineCards {
  /** @type {Map<string, Card>} */
  #cards = new Map();
  /** The states of what listens as they were described, and when that was. */
  #models = {};
  #describedAt = 0;
  #project;
  #preview = new PreviewButton();
  #shown = "";
  #ask;
  #voiceFiles;

  /**
   * @param {import("../document/project.js").Project} project whose sentence is tried
   * @param {(title: string, act: () => Promise<unknown>) => Promise<void>} ask asks the studio, and shows a refusal
   */
  constructor(project, ask) {
    this.#project = project;
    this.#ask = ask;
    this.#voiceFiles = new VoiceFiles((voice, now) => this.#show(voice, false, now));
    this.#preview.events.on("fault", (error) => showError(t`Couldn’t play a sample`, error));
    byId("hear-words-show").addEventListener("click", showListeners);
  }

  /** Shows all cards as they are now, again even if nothing is new. @param {StudioState} state */
  refresh(state) {
    this.#shown = "";
    this.show(state);
  }

  /** @param {StudioState} state */
  show({ backends, backend, downloads = {}, setup, recognisers = [], recogniser_models: models = {} }) {
    const shown = JSON.stringify([backends, backend.name, downloads, setup, recognisers, models]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    const cards = backends.toSorted((one, other) => cardRank(one) - cardRank(other)).map((engine) => {
      const { name, reason } = engine;
      const words = { speed: reason ? "" : speedWords(engine), use: voiceWords(engine) };
      return this.#show(engine, true, { chosen: name === backend.name, download: downloads[name], setup, ...words });
    });
    arrangeRows(byId("backends"), cards);
    this.#voiceFiles.show({ backends, downloads, setup });
    if (models !== this.#models) this.#describedAt = performance.now();
    this.#models = models;
    this.#showRecognisers(recognisers, { downloads, setup });
  }

  /** @param {RecogniserCard[]} recognisers */
  #showRecognisers(recognisers, { downloads, setup }) {
    setHidden(byId("recognisers-part"), !recognisers.length);
    setHidden(byId("hear-words"), !recognisers.length || hearsWords(recognisers));
    const cards = recognisers.map((one) => {
      const words = { speed: this.#listening(one.name), use: useWords(one, nameOrCount) };
      return this.#show(asCard(one), false, { chosen: false, download: downloads[one.name], setup, ...words });
    });
    arrangeRows(byId("recognisers"), cards);
  }

  /** Say how long what listens stays in memory. */
  countDown() {
    for (const name of Object.keys(this.#models)) this.#cards.get(name)?.showSpeed(this.#listening(name));
  }

  #listening(name) {
    const model = this.#models[name];
    return listeningWords(model && countDown(model, performance.now() - this.#describedAt));
  }

  /** @param {EngineCard} engine @param {boolean} speaks @param {Parameters<Card["show"]>[1]} now */
  #show(engine, speaks, now) {
    const { name } = engine;
    const card = this.#cards.get(name) ?? new Card(name, (act, pressed) => this.#press(act, pressed), speaks);
    this.#cards.set(name, card);
    card.show(engine, now);
    return card.root;
  }

  #press(act, card) {
    const { name } = card;
    switch (act) {
      case "choose":
        return this.#ask(t`Couldn’t select this engine`, () => api.chooseBackend(name));
      case "install":
        return this.#ask(t`Couldn’t start the installation`, api.startSetup);
      case "download":
        return this.#ask(t`Couldn’t download it`, () => api.downloadEngine(name));
      case "pause":
        return this.#ask(t`Couldn’t stop it`, () => (card.engine.reason ? api.stopSetup() : api.pauseDownload(name)));
      case "cancel":
        return this.#ask(t`Couldn’t cancel it`, () => api.cancelDownload(name));
      case "remove":
        return this.#remove(card);
      default:
        return this.#try(card);
    }
  }

  async #remove({ name, engine }) {
    setText(byId("remove-engine-title"), t`Remove ${engine.title} from this machine?`);
    if ((await askDialog(byId("remove-engine"), "keep")) !== "remove") return;
    await this.#ask(t`Couldn’t remove it`, () => api.removeEngine(name));
  }

  #try(card) {
    const line = this.#project.lines.find(({ kind, text }) => kind === "speech" && text?.trim()) ?? SAMPLE;
    const body = { engine: card.name, speaker: line.speaker, text: firstSentence(line.text) };
    return this.#preview.toggle(card.act("try"), (signal) => api.tryEngine(this.#project.id, body, signal));
  }
}

/** From the project's setting to the cards of what listens. */
function showListeners() {
  byId("project-open").click(); // closes its panel
  byId("model-chip").click();
  byId("recognisers-part").focus({ preventScroll: true });
  byId("recognisers-part").scrollIntoView({ block: "start" });
}

/** @param {string} text */
function firstSentence(text) {
  const [sentence] = text.match(/^.{12,}?[.!?…。！？](?=\s|$)/su) ?? [text];
  return sentence.slice(0, MOST_CHARS);
}
