/** Casting by ear: every voice for a character, each saying a line of it; nothing is kept until one is chosen. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, focusedElement, fromTemplate, safeColour, setHidden, setText } from "../core/dom.js";
import { fold, formatBytes, formatCount, languageName } from "../core/format.js";
import { announce } from "../core/notices.js";
import { t, translateServer } from "../core/texts.js";
import { PreviewButton } from "../playback/preview_button.js";
import { Auditions } from "./auditions.js";
import { Sheet } from "./sheet.js";
import { castOps, currentKey, firstToHear, isShown, lineToHear, listLanguages, namesByVoice } from "./voice_candidates.js";

/** @import { CastSpeaker, EngineCard, StudioState, VoiceCandidate, VoiceList } from "../core/types" */

const CHUNK = 60;
const FILTERS = ["search", "language", "gender", "age", "sound", "engine", "tag"];
const filterField = (name) => byId(`picker-${name}`);
const STEPS = { ArrowDown: 1, ArrowUp: -1, PageDown: 8, PageUp: -8 };
const SOUNDS = { low: t`low`, high: t`high`, slow: t`slow`, quick: t`quick`, soft: t`soft`, bright: t`bright` };
const WHO = { ...SOUNDS,  woman: t`woman`, man: t`man`, child: t`child`, young: t`young`, old: t`old` };

/** Emits nothing; it opens at "cast.voiceWanted". */
export class VoicePicker {
  #project;
  #order;
  #sheet = new Sheet(byId("voice-picker"));
  #sound = new PreviewButton();
  /** @type {CastSpeaker | null} */
  #speaker = null;
  /** @type {VoiceList} */
  #found = { engine: "", engines: [], voices: [] };
  /** @type {VoiceCandidate[]} */
  #shown = [];
  /** @type {Map<string, EngineCard>} */
  #cards = new Map();
  #downloads = {};
  /** @type {string | null} */
  #at = null;
  #asked = 0;
  /** @type {Promise<void>} */
  #listed;
  #more;
  /** @type {string | null} */
  #shownFor = null;
  #auditions;
  #direction = 1;

  /**
   * @param {import("../document/project.js").Project} project
   * @param {import("./cast_panel.js").CastOrder} order of the cast, for the next character
   */
  constructor(project, order) {
    this.#project = project;
    this.#order = order;
    this.#auditions = new Auditions(project);
    this.#sheet.events.on("closed", () => this.#left());
    this.#sound.events.on("fault", (fault) => this.#sheet.say(fault.message));
    bus.on("cast.voiceWanted", ({ name }) => this.#open(name));
    bus.on("engine.state", (state) => this.#follow(state));
    bus.on("library.changed", () => this.#sheet.isOpen && this.#reload());
    for (const name of FILTERS) filterField(name).addEventListener("input", () => this.#show());
    byId("picker-next").addEventListener("click", () => this.#step(1));
    byId("picker-use").addEventListener("click", () => this.#use(false));
    byId("picker-then").addEventListener("click", () => this.#use(true));
    byId("picker-record").addEventListener("click", () => this.#record());
    byId("voice-picker").addEventListener("keydown", (event) => this.#key(event));
    this.#more = new IntersectionObserver((seen) => seen.some((one) => one.isIntersecting) && this.#grow(), { root: byId("picker-body"), rootMargin: "300px" });
  }

  /** @param {string} name */
  #open(name) {
    filterField("engine").value = "";
    this.#begin(name);
    this.#found = { engine: "", engines: [], voices: [] };
    this.#shown = [];
    this.#shownFor = null;
    byId("picker-list").replaceChildren();
    this.#sheet.open();
    byId("picker-next").focus();
    this.#sayFirst(this.#reload());
  }

  /** Show for whom a voice is chosen. */
  #begin(name) {
    const speakers = this.#order.speakers;
    this.#speaker = speakers.find((one) => fold(one.name) === fold(name)) ?? null;
    if (!this.#speaker) return;
    for (const filter of FILTERS) if (filter !== "engine") filterField(filter).value = "";
    [this.#at, this.#direction] = [null, 1];
    delete byId("voice-picker").dataset.heard;
    byId("voice-picker").querySelector(".swatch").style.background = safeColour(this.#speaker.colour);
    setText(byId("picker-title"), t`Voice for ${this.#speaker.name}`);
    setText(byId("picker-line"), this.#line.text);
    setText(byId("picker-use"), t`Use for ${this.#speaker.name}`);
    const next = this.#next;
    setHidden(byId("picker-then"), !next);
    setText(byId("picker-then"), next ? t`Use, then ${next.name}` : "");
  }

  get #line() {
    return lineToHear(this.#project.lines, this.#speaker.name);
  }

  /** The character after this one in the cast. */
  get #next() {
    const { speakers } = this.#order;
    return speakers[speakers.findIndex(({ name }) => name === this.#speaker.name) + 1] ?? null;
  }

  /** Resolves when the list that was asked for last is shown. */
  #reload() {
    return (this.#listed = this.#list());
  }

  async #list() {
    const asked = (this.#asked += 1);
    const speaker = this.#speaker;
    /** @type {VoiceList | null} */
    let found = null;
    await this.#sheet.tries(async () => (found = await api.listVoices(this.#project.id, speaker.name)));
    if (!this.#sheet.isOpen) return undefined;
    if (asked !== this.#asked) return this.#listed;
    if (!found) return undefined;
    const isShown = this.#shownFor === speaker.name && JSON.stringify(found) === JSON.stringify(this.#found);
    this.#found = found;
    if (isShown) return undefined; // a row that is rebuilt would lose the focus
    this.#shownFor = speaker.name;
    this.#offerFilters();
    this.#show();
    return undefined;
  }

  /** A press opened the picker: what it makes audible is asked for in the same press, as Safari demands. */
  #sayFirst(listed) {
    this.#sound.hush();
    const isFree = focusedElement()?.closest("#picker-list, #picker-next") != null;
    this.#sound.toggle(byId("picker-next"), async (signal) => {
      await listed;
      if (signal.aborted || !this.#ready.length) throw new DOMException(t`nothing to play`, "AbortError");
      this.#select(this.#firstKey());
      if (isFree) this.#rowOf(this.#at)?.querySelector(".pick-open").focus();
      return this.#read(signal);
    });
  }

  /** The voice in use, which the list may hide or not be able to speak. */
  #firstKey() {
    const now = currentKey(this.#project.view, this.#speaker, this.#found.engine, this.#found.voices);
    return this.#ready.some(({ key }) => key === now) ? now : this.#suggested();
  }

  /** The shown voices that can be heard now. */
  get #ready() {
    return this.#shown.filter(({ key }) => !this.#engineOf(key)?.to_fetch);
  }

  /** A voice to try first for a character that has an automatic one. */
  #suggested() {
    const { view } = this.#project;
    const { engine, voices } = this.#found;
    const { speakers } = this.#order;
    const taken = new Set(speakers.map((one) => currentKey(view, one, engine, voices)));
    const place = speakers.findIndex(({ name }) => name === this.#speaker.name);
    const own = this.#ready.filter((voice) => (voice.engine ?? engine) === engine && voice.kind !== "none");
    return firstToHear(own.length ? own : this.#ready, taken, place / Math.max(1, speakers.length))?.key;
  }

  /** @param {StudioState} state */
  #follow({ backends, downloads = {} }) {
    const fetched = ({ name, to_fetch: toFetch }) => (this.#cards.get(name)?.to_fetch ?? null) !== toFetch;
    const isNews = this.#cards.size > 0 && backends.some(fetched);
    this.#cards = new Map(backends.map((one) => [one.name, one]));
    const isProgress = JSON.stringify(downloads) !== JSON.stringify(this.#downloads);
    this.#downloads = downloads;
    if (!this.#sheet.isOpen) return;
    if (isNews) this.#reload();
    else if (isProgress) this.#showDownloads();
  }

  #offerFilters() {
    const { engines, voices } = this.#found;
    this.#offerLanguages();
    offer("gender", t`Any gender`, distinct(voices.map(({ gender }) => gender)));
    offer("age", t`Any age`, distinct(voices.map(({ age }) => age)));
    const heard = new Set(voices.flatMap(({ sound }) => sound));
    offer("sound", t`Any sound`, distinct(Object.keys(SOUNDS).filter((word) => heard.has(word))));
    const titles = engines.filter(({ name }) => voices.some(({ engine }) => engine === name)).map(({ name, title }) => new Option(title, name));
    offer("engine", t`All engines`, [...(voices.some(({ engine }) => engine === null) ? [new Option(t`Your voices`, "own")] : []), ...titles]);
    const tags = new Map(voices.flatMap((one) => one.tags.map((tag) => [fold(tag), tag])));
    offer("tag", t`Any tag`, [...tags].map(([key, tag]) => new Option(tag, key)).toSorted((a, b) => a.text.localeCompare(b.text)));
  }

  /** Those of the engine whose voices are shown, with their regions: else of the project's. */
  #offerLanguages() {
    const { engine, engines, voices } = this.#found;
    const shown = filterField("engine").value || engine;
    const of = voices.filter((one) => (shown === "own" ? one.engine === null : one.engine === shown));
    const codes = [...of.flatMap((one) => one.languages), ...(engines.find(({ name }) => name === shown)?.languages ?? [])];
    const languages = listLanguages(codes).map((code) => new Option(languageName(code), code));
    offer("language", t`Any language`, languages.toSorted((a, b) => a.text.localeCompare(b.text)));
  }

  /** Show the voices that pass the filters, the first rows of them; scrolling brings more. */
  #show() {
    this.#offerLanguages();
    const filter = /** @type {import("./voice_candidates.js").VoiceFilter} */ (Object.fromEntries(FILTERS.map((name) => [name, filterField(name).value])));
    const spoken = new Map(this.#found.engines.map(({ name, languages }) => [name, languages]));
    this.#shown = this.#found.voices.filter((voice) => isShown(voice, filter, spoken, `${nameOf(voice)} ${this.#about(voice)}`));
    const all = this.#found.voices.length;
    const n = this.#shown.length;
    setText(byId("picker-count"), n === 0 ? t`No matching voices. Try another search or filter.` : n < all ? t`${n} of ${formatCount(all, "voice")}` : formatCount(all, "voice"));
    const holds = focusedElement()?.closest("#picker-list") != null;
    byId("picker-list").replaceChildren();
    this.#grow();
    if (this.#shown.some(({ key }) => key === this.#at)) this.#select(this.#at);
    else if (this.#at) this.#forget();
    if (holds) (this.#rowOf(this.#at) ?? byId("picker-list").firstElementChild)?.querySelector(".pick-open").focus();
  }

  /** A voice that the list doesn't show is neither heard nor given. */
  #forget() {
    this.#at = null;
    this.#sound.hush();
    this.#mark();
  }

  #grow() {
    const list = byId("picker-list");
    const from = list.children.length;
    this.#more.disconnect();
    const { engine, voices } = this.#found;
    const now = currentKey(this.#project.view, this.#speaker, engine, voices);
    const others = namesByVoice(this.#project.view, this.#order.speakers, this.#speaker, engine, voices);
    const usedBy = ({ key }) => (key === now ? [t`in use`] : []).concat(key === "automatic" ? [] : (others.get(key) ?? []).map((name) => t`${name} has it`));
    list.append(...this.#shown.slice(from, from + CHUNK).map((voice) => this.#row(voice, usedBy(voice).join(", "))));
    if (list.children.length < this.#shown.length) this.#more.observe(list.lastElementChild);
    this.#showDownloads();
    this.#mark();
  }

  #row(voice, use) {
    const row = fromTemplate("pick-template");
    row.dataset.key = voice.key;
    const about = this.#about(voice);
    const name = nameOf(voice);
    setText(row.querySelector(".pick-name"), name);
    setText(row.querySelector(".pick-about"), about);
    setText(row.querySelector(".pick-now"), use);
    setHidden(row.querySelector(".pick-now"), !use);
    const [play, open] = [row.querySelector(".pick-play"), row.querySelector(".pick-open")];
    play.ariaLabel = t`Listen to ${name}`;
    open.ariaLabel = [name, about, use].filter(Boolean).join(", ");
    play.addEventListener("click", () => this.#press(voice.key, play));
    open.addEventListener("click", () => this.#press(voice.key, play));
    row.querySelector(".pick-get").addEventListener("click", () =>
      this.#sheet.tries(() => api.downloadEngine(voice.engine)));
    return row;
  }

  #about({ kind, engine, languages, gender, age, sound, tags }) {
    const by = this.#found.engines.find(({ name }) => name === (engine ?? this.#found.engine));
    const kinds = { automatic: t`chosen by name`, sample: t`your recording`, described: t`Described voice`, none: t`no recording yet` };
    const source = kinds[kind] ?? (engine ? by?.title ?? engine : t`engine voice`);
    const spoken = languages.length > 0 && languages.length <= 3 ? languages.map((code) => languageName(code)).join(", ") : "";
    const looks = (tags.length ? [] : [gender, age]).concat(sound).map((word) => WHO[word] ?? word); // which such tags say
    return [source, ...looks, spoken, tags.join(", ")].filter(Boolean).join(" · ");
  }

  /** What stands in the way of rows, or how far their download is. */
  #showDownloads() {
    for (const row of byId("picker-list").children) {
      const engine = this.#engineOf(row.dataset.key);
      const away = Boolean(engine?.to_fetch);
      const get = row.querySelector(".pick-get");
      setHidden(get, !away);
      setHidden(row.querySelector(".pick-play"), away);
      if (!away) continue;
      const card = this.#cards.get(engine.name);
      const download = this.#downloads[engine.name];
      const size = card?.download_bytes ? ` (${formatBytes(card.download_bytes)})` : "";
      const share = download?.fraction == null ? "" : ` ${Math.round(100 * download.fraction)} %`;
      const runs = download?.state === "running" || download?.state === "stopping";
      setText(get, runs ? t`Downloading${share}` : download?.state === "failed" ? t`Try again` : t`Download${size}`);
      get.disabled = runs || card?.downloadable === false;
      get.ariaLabel = `${get.textContent}: ${engine.title}`;
    }
  }

  /** The engine whose voice it is, if it is one of an engine. @param {string | null} key */
  #engineOf(key) {
    const [kind, name] = (key ?? "").split("/");
    return kind === "engine" ? this.#found.engines.find((one) => one.name === name) ?? null : null;
  }

  #rowOf(key) {
    return [...byId("picker-list").children].find((row) => row.dataset.key === key);
  }

  /** Select a voice; its row is made if it isn't there yet. @param {string} key */
  #select(key) {
    const place = this.#shown.findIndex((voice) => voice.key === key);
    if (place < 0) return;
    while (byId("picker-list").children.length <= place) this.#grow();
    this.#at = key;
    this.#mark();
    this.#rowOf(key)?.scrollIntoView({ block: "nearest" });
  }

  /** Only the selected row is in the Tab order. */
  #mark() {
    const rows = [...byId("picker-list").children];
    const chosen = rows.find((row) => row.dataset.key === this.#at) ?? rows[0];
    for (const row of rows) {
      row.toggleAttribute("data-selected", row.dataset.key === this.#at);
      for (const button of row.querySelectorAll("button")) button.tabIndex = row === chosen ? 0 : -1;
    }
    const voice = this.#shown.find((one) => one.key === this.#at);
    const engine = this.#engineOf(this.#at);
    const usable = Boolean(voice) && !engine?.to_fetch;
    for (const id of ["picker-use", "picker-then"]) byId(id).disabled = !usable;
    const note = noteOn(voice, engine, this.#found, this.#speaker);
    setText(byId("picker-note"), note);
    setHidden(byId("picker-note"), !note);
  }

  /** The same line by the next voice that can be heard now. @param {number} by */
  #step(by) {
    this.#direction = by;
    const key = this.#keyAfter(by);
    if (key) this.#hear(key);
  }

  /** The voice so many rows on; behind the automatic one, which stands first, that is the suggested one. */
  #keyAfter(by) {
    const ready = this.#ready;
    if (this.#at === "automatic" && by === 1) return this.#suggested() ?? null;
    const here = ready.findIndex(({ key }) => key === this.#at);
    return ready[here < 0 ? 0 : Math.min(ready.length - 1, Math.max(0, here + by))]?.key ?? null;
  }

  /** @param {string} key */
  #hear(key) {
    const holds = focusedElement()?.closest("#picker-list");
    this.#select(key);
    const play = this.#rowOf(key).querySelector(".pick-play");
    if (holds) this.#rowOf(key).querySelector(".pick-open").focus();
    this.#sheet.say("");
    this.#sound.hush();
    this.#sound.toggle(play, (signal) => this.#read(signal));
  }

  /** A press on a row: hear it, or stop it. */
  #press(key, play) {
    if (this.#engineOf(key)?.to_fetch) return this.#select(key);
    this.#select(key);
    this.#sheet.say("");
    return this.#sound.toggle(play, (signal) => this.#read(signal));
  }

  /** The line by the selected voice; the one that a further step would choose is made meanwhile. @param {AbortSignal} signal */
  async #read(signal) {
    const voice = this.#at;
    const name = this.#found.voices.find(({ key }) => key === voice)?.name ?? "";
    const next = this.#keyAfter(this.#direction);
    const parts = this.#auditions.say({ speaker: this.#speaker.name, voice, ...this.#line }, next === voice ? null : next);
    await parts[0];
    if (signal.aborted) return parts;
    byId("voice-picker").dataset.heard = voice;
    announce(name);
    return parts;
  }

  /** Give the character the selected voice. @param {boolean} goesOn whether the next character is cast then */
  #use(goesOn) {
    const voice = this.#found.voices.find(({ key }) => key === this.#at);
    if (!voice || byId("picker-use").disabled) return;
    const { view } = this.#project;
    const speaker = this.#speaker;
    if (currentKey(view, speaker, this.#found.engine, this.#found.voices) !== voice.key) {
      this.#project.edit(castOps(view, speaker, voice.key, this.#found.engine));
    }
    announce(`${speaker.name}: ${nameOf(voice)}.`);
    const next = goesOn ? this.#next : null;
    if (!next) return this.#sheet.close();
    this.#begin(next.name);
    return this.#sayFirst(this.#project.flush().then(() => this.#reload()));
  }

  #record() {
    const { name } = this.#speaker;
    this.#sheet.close();
    bus.emit("cast.sampleWanted", { name });
  }

  #key(event) {
    const { target, key } = event;
    const isChoosing = target.closest("select") !== null;
    if (key in STEPS && !isChoosing) this.#step(STEPS[key]);
    else if (key === "Enter" && target.closest(".pick-open, #picker-search")) this.#use(event.shiftKey);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #left() {
    this.#asked += 1;
    this.#sound.hush();
    this.#auditions.clear();
    this.#more.disconnect();
    delete byId("voice-picker").dataset.heard;
    const name = this.#speaker?.name;
    this.#speaker = null;
    bus.emit("cast.voiceLeft", { name });
  }
}

/** What choosing a voice means beyond its sound. */
function noteOn(voice, engine, { engine: own, engines }, speaker) {
  if (engine?.to_fetch) return t`${engine.title} isn’t downloaded yet. Download it to hear its voices.`;
  if (engine && engine.name !== own) return t`This sets ${engine.title} for the whole scene. You can undo it.`;
  const now = engines.find(({ name }) => name === own);
  if (voice?.kind === "sample" && now && !now.cloning) return t`${now.title} can’t clone a recording: ${speaker.name} gets ${translateServer(now.instead_of_sample)}.`;
  return "";
}

/** A voice that no user named is named in the page's language. @param {VoiceCandidate} voice */
function nameOf({ kind, name }) {
  return kind === "automatic" || kind === "none" ? translateServer(name) : name;
}

/** @param {string[]} values */
function distinct(values) {
  return [...new Set(values.filter(Boolean))].toSorted().map((value) => {
    const said = WHO[value] ?? value;
    return new Option(said[0].toUpperCase() + said.slice(1), value);
  });
}

/** Fill a filter; one that has nothing to choose from isn't shown. @param {string} name @param {string} any @param {HTMLOptionElement[]} options */
function offer(name, any, options) {
  const select = filterField(name);
  const chosen = select.value;
  select.replaceChildren(new Option(any, ""), ...options);
  select.value = options.some(({ value }) => value === chosen) ? chosen : "";
  setHidden(select, options.length === 0);
}
