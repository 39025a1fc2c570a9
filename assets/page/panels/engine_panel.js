/**
 * The header's voice engine: its state, idle countdown and installation; and the engine and seed of the project.
 */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { askDialog, byId, disclose, setData, setHidden, setText } from "../core/dom.js";
import { formatBytes, formatClock, formatCount } from "../core/format.js";
import { showError, showNotice } from "../core/notices.js";
import { t, translateServer } from "../core/texts.js";
import { isMissing } from "../document/document.js";
import { EngineCards } from "./engine_cards.js";
import { chipWords, countDown, firstVoice, isNews, licenceWords, memoryChange, readyVoices, slotWords, stateWords } from "./engine_state.js";

/** @import { EngineCard, EngineDownload, StudioState } from "../core/types" */

const ASKED_FROM = 3;

const engine = () => byId("project-engine");
const seed = () => byId("project-seed");

/**
 * Older names of engines, which projects and takes may still have.
 * @param {string | null | undefined} name
 */
const currentName = (name) => name?.replace(/-batched$/, "");

/** The engine and seed of a project, with a question before another engine renders all lines again. */
export class ProjectEngine {
  #project;
  #backends = [];
  #own = null;
  #shown = "";

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    bus.on("project.meta", () => this.#show());
    bus.on("engine.state", (state) => this.#offer(state));
    engine().addEventListener("change", () => this.#project.editSettings({ backend: engine().value || null }));
    seed().addEventListener("change", () => {
      if (seed().validity.valid) this.#project.editSettings({ seed: seed().value === "" ? null : Number(seed().value) });
      else this.#show();
    });
  }

  /** @param {{backend: {name: string}, backends: Array<{name: string, title: string, reason: string | null}>}} state */
  #offer({ backend, backends }) {
    const shown = JSON.stringify([backend.name, backends]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#own = backend.name;
    this.#backends = backends;
    this.#show();
  }

  #title(name) {
    return this.#backends.find((one) => one.name === name)?.title ?? name;
  }

  #show() {
    const { settings } = this.#project.view;
    if (document.activeElement !== engine()) {
      const chosen = currentName(settings.backend);
      const able = this.#backends.filter(({ name, reason }) => !reason || name === chosen);
      const options = able.map(({ name, title }) => new Option(title, name));
      engine().replaceChildren(new Option(t`Default: ${this.#title(this.#own)}`, ""), ...options);
      engine().value = chosen ?? "";
    }
    if (document.activeElement !== seed()) seed().value = settings.seed ?? "";
  }

  /** Lines whose take is by another engine than the current one. */
  #foreign() {
    const now = currentName(this.#project.view.settings.backend) ?? this.#own;
    const made = new Map();
    for (const { kind, take, locked } of this.#project.lines) {
      if (kind !== "speech" || !take || locked) continue;
      const maker = currentName(take.backend);
      made.set(maker, (made.get(maker) ?? 0) + 1);
    }
    const [most] = [...made].toSorted((one, other) => other[1] - one[1]);
    if (!most || most[0] === now || most[1] < ASKED_FROM) return null;
    return { now, previous: most[0], lines: most[1] };
  }

  /** @returns {Promise<boolean>} whether missing or outdated lines may be rendered now */
  async agree() {
    const found = this.#foreign();
    if (!found) return true;
    const choice = await this.#ask(found);
    if (choice === "keep") this.#project.editSettings({ backend: found.previous });
    await this.#project.flush();
    return choice === "keep" || choice === "again";
  }

  #ask({ now, previous, lines }) {
    const dialog = byId("engine-confirm");
    const able = this.#backends.some(({ name, reason }) => name === previous && !reason);
    const offer = t`Regenerate ${formatCount(lines, "line")} with ${this.#title(now)}`;
    setText(byId("engine-confirm-title"), t`These takes were made with ${this.#title(previous)}.`);
    setText(byId("engine-confirm-text"), t`${offer}? Existing takes are kept, and you can switch back line by line.`);
    setText(byId("engine-keep"), t`Keep ${this.#title(previous)} for this project`);
    setHidden(byId("engine-keep"), !able);
    setText(byId("engine-again"), t`Regenerate`);
    return askDialog(dialog, "cancel");
  }
}

const COUNT_MS = 1000;
const DRAFT = "draft";

/** Emits "engine.state". */
export class EnginePanel {
  #state = null;
  #describedAt = 0;
  #isLost = false;
  #isWarmed = false;
  #timeout = byId("model-timeout");
  #atOnce = byId("model-at-once");
  #project;
  #cards;
  /** The first voice that this page asked for, with which the scene is read once it is here. */
  #wanted = null;
  /** The natural voice that the studio brought while this page looked on, for a scene that draft takes have. */
  #brought = null;

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    this.#cards = new EngineCards(project, (title, act) => this.#ask(title, act));
    disclose(byId("model-chip"), byId("model-panel"));
    bus.on("engine.changed", (parts) => this.#take(parts));
    bus.on("project.meta", () => this.#show());
    bus.on("project.changed", () => this.#warm());
    bus.on("connection.lost", (error) => this.#lost(error));
    setInterval(() => this.#countDown(), COUNT_MS);
    this.#press("model-load", t`Couldn’t load the model`, () => api.loadModel(true));
    this.#press("model-stop", t`Couldn’t stop loading`, api.cancelLoad);
    this.#press("model-unload", t`Couldn’t unload the model`, api.unloadModel);
    this.#timeout.addEventListener("change", () => this.#setTimeout());
    this.#atOnce.addEventListener("change", () => this.#setAtOnce());
  }

  /**
   * Show the first state, which was asked for while the page was built; the stream brings the later ones.
   * @param {Promise<StudioState>} answer
   */
  async start(answer) {
    try {
      const state = await answer;
      if (!this.#state) this.#take(state);
    } catch (error) {
      if (error.status !== 429) this.#lost(error); // busy, not gone
    }
  }

  /** @param {Partial<StudioState>} parts that are different from what is known, or all */
  #take(parts) {
    const known = this.#state;
    this.#state = { ...known, ...parts };
    this.#isLost = false;
    if (parts.model) this.#describedAt = performance.now();
    showNotice("offline");
    this.#show();
    if (isNews(parts, known)) bus.emit("engine.state", this.#state);
    this.#warm();
  }

  /** @param {Error} error why the studio can't be reached */
  #lost(error) {
    this.#isLost = true;
    setText(byId("model-state"), t`offline`);
    showNotice("offline", { kind: "error", title: t`Connection lost`, text: error.message });
  }

  #show() {
    if (!this.#state || this.#isLost) return;
    this.#chip(this.#state);
    this.#panel(this.#state);
    this.#setup(this.#state.setup);
    this.#firstVoice(this.#state);
  }

  /** Who hears the draft voice for want of another is offered a natural one, by one button. */
  #firstVoice({ backends, backend, downloads = {}, first_voices: offered = [], auto_reason: reason }) {
    if (this.#wanted && backend.name === this.#wanted) {
      this.#wanted = null;
      this.#brought = null;
      bus.emit("engine.arrived");
    }
    const known = [this.#wanted, this.#brought, ...offered].filter((name) => name !== null);
    const asked = backends.find(({ name }) => known.includes(name) && downloads[name]?.chooses);
    this.#brought = asked?.name ?? this.#brought;
    if (this.#brought === backend.name) return this.#offerAgain(backend);
    const about = { kind: "info", title: t`This is a quick robot voice for drafts.`, text: translateServer(reason) || null };
    if (!reason || backend.name !== DRAFT || this.#own) return showVoiceNotice({ text: null });
    const here = asked ? null : firstVoice(readyVoices(backends), backends, this.#languages);
    if (here) return showVoiceNotice({ ...about, ...this.#offerToUse(here) });
    const voice = asked ?? firstVoice(offered, backends, this.#languages);
    showVoiceNotice(voice ? this.#offerOf(voice, downloads[voice.name]) : about);
  }

  /** Who has heard the scene in the draft voice may hear it again in the one that came meanwhile, by one press. */
  #offerAgain({ name, title }) {
    const lines = this.#project.lines.filter(({ take, locked }) => take?.backend === "draft" && !locked).length;
    const follows = [null, name].includes(this.#project.view.settings.backend ?? null);
    if (!lines || !follows) return showVoiceNotice({ kind: "info", title: "", text: null });
    const press = () => {
      this.#brought = null;
      this.#show();
      bus.emit("engine.wanted");
      bus.emit("engine.arrived");
    };
    const act = { label: t`Regenerate ${formatCount(lines, "line")} with ${title}`, press };
    return showVoiceNotice({ kind: "info", title: t`${title} is ready and sounds natural.`, text: "", act });
  }

  /** What the notice says of a natural voice that is here, as somebody downloaded it meanwhile. @param {EngineCard} card */
  #offerToUse({ name, title }) {
    const press = () => {
      this.#want(name);
      return this.#ask(t`Couldn’t select this engine`, () => api.chooseBackend(name));
    };
    return { text: t`${title} is ready and sounds natural.`, act: { label: t`Use ${title}`, press } };
  }

  /** Once this voice is chosen, the scene is read with it. @param {string} name */
  #want(name) {
    this.#wanted = name;
    bus.emit("engine.wanted");
  }

  /** What the notice says of a natural voice, or of its download. @param {EngineCard} card @param {EngineDownload | undefined} download */
  #offerOf(card, download) {
    const { name, title, summary, download_bytes: bytes } = card;
    const ask = (said, act) => () => this.#ask(said, act);
    if (download?.state === "running" || download?.state === "stopping") {
      const pause = { label: t`Pause`, press: ask(t`Couldn’t stop it`, () => api.pauseDownload(name)) };
      return { title: t`Downloading ${title}.`, text: translateServer(download.message), act: pause };
    }
    const fetched = () => {
      this.#want(name);
      return this.#ask(t`Couldn’t download it`, () => api.downloadEngine(name, true));
    };
    if (download) {
      const failed = download.state === "failed";
      const act = { label: failed ? t`Try again` : t`Resume`, press: fetched };
      const kind = failed ? "warning" : "info";
      return { kind, title: failed ? t`${title} isn’t downloaded.` : t`${title} is paused.`, text: translateServer(download.message), act };
    }
    const text = t`${title} sounds natural and runs on this machine. ${translateServer(summary)} ${licenceWords(card)}.`;
    const act = { label: t`Download ${title} (${formatBytes(bytes)})`, press: fetched };
    return { title: t`This is a quick robot voice for drafts.`, text, act };
  }

  /** The languages that lines of the scene name, without their regions. */
  get #languages() {
    const named = this.#project.lines.map(({ language }) => language).filter(Boolean);
    return new Set(named.map((code) => code.split("-")[0]));
  }

  /** The engine that this project has of its own, which speaks in place of the studio's. @returns {EngineCard | undefined} */
  get #own() {
    const own = currentName(this.#project.view.settings.backend);
    return this.#state.backends.find(({ name }) => name === own);
  }

  /**
   * Load a small natural voice as soon as there is something to read, for the first press of Play. Once only, as it is
   * unloaded again when it is idle; why it can't be loaded, that press says.
   */
  #warm() {
    const { backend, backends, model } = this.#state ?? {};
    if (!model || model.loads || model.state !== "unloaded" || this.#isWarmed || this.#own) return;
    const card = backends.find(({ name }) => name === backend.name);
    if (card?.large_packages || !readyVoices(backends).includes(backend.name)) return;
    if (!this.#project.lines.some(isMissing)) return;
    this.#isWarmed = true;
    api.loadModel(false).catch(() => {});
  }

  /** The model by now. */
  get #model() {
    return countDown(this.#state.model, performance.now() - this.#describedAt);
  }

  #countDown() {
    if (document.hidden || this.#isLost || !this.#state) return;
    this.#cards.countDown();
    if (this.#state.model.unload_in_s !== null) this.#facts(this.#state.engine);
  }

  /** Only of the studio's own engine it is known whether it is loaded. */
  #chip({ backend, model }) {
    const own = this.#own;
    const isOther = own !== undefined && own.name !== backend.name;
    setText(byId("model-title"), own?.title ?? backend.title);
    setData(byId("model-chip"), "state", model.state);
    setText(byId("model-state"), isOther ? "" : chipWords(model));
  }

  #panel({ backend, model, engine }) {
    setText(byId("model-name"), backend.title);
    setText(byId("model-message"), translateServer(model.message ?? ""));
    setHidden(byId("model-progress"), model.state !== "loading");
    showProgress(byId("model-progress"), model.fraction);
    setHidden(byId("model-stop"), model.state !== "loading");
    setHidden(byId("model-load"), model.state === "loading");
    byId("model-load").disabled = model.state !== "unloaded" && model.state !== "failed";
    byId("model-unload").disabled = model.state !== "loaded";
    this.#facts(engine);
    this.#showTimeout(model);
    if (document.activeElement !== this.#atOnce) this.#atOnce.value = String(engine.max_concurrency);
    setText(byId("model-slots"), slotWords(engine));
    this.#cards.show(this.#state);
  }

  #setup(setup) {
    const { state, message, fraction, detail } = setup;
    setHidden(byId("setup"), state !== "installing");
    setText(byId("setup-message"), message);
    byId("setup").title = detail ?? "";
    showProgress(byId("setup-progress"), fraction);
    showNotice("setup", {
      kind: "warning",
      title: t`The large voice engines aren’t installed.`,
      text: state === "failed" ? `${message} ${detail ?? ""}`.trim() : null,
      act: { label: t`Try again`, press: () => this.#install() },
    });
  }

  #install() {
    return this.#ask(t`Couldn’t start the installation`, api.startSetup);
  }

  #facts(engine) {
    const model = this.#model;
    const used = model.memory_bytes ? formatBytes(model.memory_bytes) : "—";
    table(byId("model-facts"), [
      [t`State`, stateWords(model)],
      [t`Memory`, used],
      [t`Last load or unload`, memoryChange(model)],
      [t`Generating`, t`${engine.in_flight} of at most ${engine.usable_slots ?? engine.slots ?? engine.max_concurrency}`],
      [t`Waiting`, String(engine.queued)],
      [t`Since start`, `${formatCount(model.loads, "load")}, ${formatCount(model.unloads, "unload")}`],
    ]);
  }

  #showTimeout({ idle_timeout_s: seconds, eviction_enabled: enabled }) {
    if (document.activeElement === this.#timeout) return;
    const value = String(enabled ? seconds : 0);
    const known = [...this.#timeout.options].some((option) => option.value === value);
    if (!known) this.#timeout.add(new Option(t`after ${formatClock(seconds)}`, value));
    this.#timeout.value = value;
    this.#timeout.disabled = !enabled;
  }

  #setTimeout() {
    this.#timeout.blur();
    return this.#ask(t`Couldn’t set the time`, () => api.setTimeoutSeconds(Number(this.#timeout.value)));
  }

  #setAtOnce() {
    this.#atOnce.blur();
    if (!this.#atOnce.validity.valid) return this.#show();
    return this.#ask(t`Couldn’t set the number`, () => api.setConcurrency(this.#atOnce.valueAsNumber));
  }

  #press(id, title, act) {
    byId(id).addEventListener("click", () => this.#ask(title, act));
  }

  /** Ask the studio for something: the stream brings what it changes. After a refusal, show what is so. */
  async #ask(title, act) {
    try {
      await act();
    } catch (error) {
      showError(title, error);
      if (this.#state) this.#cards.refresh(this.#state);
      this.#show();
    }
  }
}

/** @param {Parameters<typeof showNotice>[1]} about of the voice that speaks for want of another */
function showVoiceNotice(about) {
  return showNotice("draft", { ...about, standing: true });
}

function showProgress(bar, fraction) {
  if (fraction === null) bar.removeAttribute("value");
  else bar.value = fraction;
}

function table(list, facts) {
  while (list.children.length < facts.length * 2) {
    list.append(document.createElement("dt"), document.createElement("dd"));
  }
  facts.flat().forEach((text, idx) => setText(list.children[idx], text));
}
