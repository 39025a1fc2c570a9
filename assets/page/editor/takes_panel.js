/** The takes of one line, to compare: hear, star, use, keep, delete. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, focusedElement, fromTemplate, safeColour, setData, setHidden, setText } from "../core/dom.js";
import { fold, formatDecimal, formatLength } from "../core/format.js";
import { announce, showDone, showError } from "../core/notices.js";
import { t } from "../core/texts.js";
import { RATE_HZ, takeIssues } from "../document/document.js";
import { followVolume } from "../playback/audio_clock.js";
import { paintWave } from "../playback/waveform.js";

/** @import { Line, Parts, Take } from "../core/types" */

export class TakesPanel {
  #list = byId("takes");
  #audio = followVolume(new Audio());
  #parts;
  #line = null;
  /** @type {Take[]} */
  #takes = [];
  #known = "";
  // Counts what is to be shown: of lists that overtake each other, the last asked for counts.
  #asked = 0;
  /** The take that was heard last, and the one that the used take is compared with; ids. */
  #heard = null;
  #rival = null;

  /** @param {Pick<Parts, "project" | "commands" | "player" | "peaks">} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#audio.addEventListener("ended", () => this.#hush());
    bus.on("project.changed", () => this.#showMarks());
    bus.on("player.changed", () => parts.player.playing && this.#hush());
    parts.peaks.events.on("loaded", () => this.#drawWaves());
    new ResizeObserver(() => this.#drawWaves()).observe(this.#list);
    byId("takes-compare").addEventListener("click", () => this.compare());
    byId("takes-keep").addEventListener("click", () => this.keepBest());
  }

  /** @param {Line | null} line whose takes are shown */
  show(line) {
    const isSame = line?.line_id === this.#line?.line_id;
    if (!isSame) this.#heard = this.#rival = null;
    this.#line = line;
    const known = line ? `${line.line_id} ${line.take?.take_id} ${line.chosen} ${line.n_takes} ${line.state}` : "";
    if (known === this.#known) return;
    this.#known = known;
    this.#asked += 1;
    if (!line?.take && !line?.n_takes) return this.#put([]);
    if (isSame) this.#put(this.#takes); // which one is in use now shows before the studio answers
    this.#load(line.line_id);
  }

  async #load(lineId) {
    const asked = (this.#asked += 1);
    try {
      const answer = await api.listTakes(this.#parts.project.id, lineId);
      if (asked === this.#asked) this.#put((answer.takes ?? answer).toReversed());
    } catch (error) {
      if (error.status !== 404) showError(t`Couldn’t show the takes`, error);
    }
  }

  /** Show takes; the one that plays goes on. */
  #put(takes) {
    const playing = this.#audio.paused ? null : takes.find(({ take_id: takeId, gone }) => takeId === this.#heard && !gone);
    if (!playing) this.#hush();
    this.#takes = takes;
    const held = this.#held();
    setHidden(byId("takes-part"), !this.#line);
    setHidden(byId("takes-none"), takes.length > 0);
    byId("takes-compare").disabled = byId("takes-keep").disabled = takes.length < 2;
    this.#list.replaceChildren(...takes.map((take) => this.#row(take)));
    this.#showPlaying(playing?.take_id ?? null);
    this.#showMarks();
    this.#drawWaves();
    if (held) this.#hold(held);
  }

  /** The focused control in the list. @returns {{take: string, at: number, control: string} | null} */
  #held() {
    const row = focusedElement()?.closest("#takes .take");
    if (!row) return null;
    const control = [...focusedElement().classList].find((name) => name.startsWith("take-"));
    return { take: row.dataset.take, at: [...this.#list.children].indexOf(row), control };
  }

  /** Rebuild the rows; the focus stays on its take, or on the one that is now in its place. */
  #hold({ take, at, control }) {
    const rows = [...this.#list.children];
    const row = rows.find(({ dataset }) => dataset.take === take) ?? rows[Math.min(at, rows.length - 1)];
    (row?.querySelector(`.${control}:enabled`) ?? row?.querySelector("button:enabled"))?.focus({ preventScroll: true });
  }

  get #accepted() {
    return this.#parts.project.view.accepted_takes;
  }

  get #starred() {
    return this.#parts.project.view.starred_takes;
  }

  /** Which takes have a star, were accepted in spite of their quality issues, and are A and B. */
  #showMarks() {
    const [used, rival] = this.#takes.length > 1 ? this.#pair : [];
    for (const row of this.#list.children) {
      const { take } = row.dataset;
      const press = (name, on) => row.querySelector(`.take-${name}`).setAttribute("aria-pressed", String(on));
      press("fine", this.#accepted.includes(take));
      press("star", this.#starred.includes(take));
      setText(row.querySelector(".take-tag"), take === used ? "A" : take === rival ? "B" : "");
    }
  }

  /** A, the take in use, and B, which was heard beside it last or else is the newest; ids. @returns {(string | undefined)[]} */
  get #pair() {
    const used = this.#line?.take?.take_id;
    const others = this.#takes.filter(({ take_id: takeId, gone }) => takeId !== used && !gone);
    const rival = others.find(({ take_id: takeId }) => takeId === this.#rival) ?? others[0];
    return [used, rival?.take_id];
  }

  /** Hear A or B, whichever wasn't heard last; from the same place, if one is playing. */
  compare() {
    if (!this.#line) return announce(t`Select a line to compare its takes.`);
    const [used, rival] = this.#pair;
    if (!rival) return announce(t`There is only one take. Press R for another.`);
    const next = (this.#heard ?? used) === used ? rival : used;
    const at = this.#audio.paused ? 0 : this.#audio.currentTime;
    this.#hear(next, at);
    return announce(`${next === used ? "A" : "B"}: ${this.#nameOf(next)}.`);
  }

  /** Use the take that was heard last. */
  usePlayed() {
    const heard = this.#takes.find(({ take_id: takeId }) => takeId === this.#heard);
    if (!this.#line || !heard) return announce(t`Play a take first. Press A to compare takes.`);
    if (heard.take_id !== this.#line.take?.take_id) this.#choose(heard.take_id);
    return announce(t`${this.#nameOf(heard.take_id)} is in use.`);
  }

  /** The take that was in use stays at hand, as B. */
  #choose(takeId) {
    this.#rival = this.#line.take?.take_id ?? null;
    this.#parts.commands.choose(this.#line.line_id, takeId);
  }

  /** Free all takes but those with a star, or the one in use where none has; locked ones stay. */
  keepBest() {
    if (!this.#line || this.#takes.length < 2) return announce(t`Nothing to clean up: there is only one take.`);
    const used = this.#line.take?.take_id;
    const starred = this.#takes.filter(({ take_id: takeId }) => this.#starred.includes(takeId));
    const ids = starred.map(({ take_id: takeId }) => takeId);
    const best = ids.length === 0 || ids.includes(used) ? used : ids[0];
    const others = this.#takes.filter(({ take_id: takeId, locked }) => takeId !== best && !locked && !ids.includes(takeId));
    if (!others.length) return announce(t`Nothing to clean up: the other takes are locked or starred.`);
    const freed = others.map(({ take_id: takeId }) => takeId);
    this.#parts.commands.keepBest(this.#line.line_id, best === this.#line.chosen ? null : best, freed);
    this.#known = "";
    return undefined;
  }

  #nameOf(takeId) {
    return t`Take ${this.#takes.find((take) => take.take_id === takeId)?.number}`;
  }

  #drawWaves() {
    const { project, peaks } = this.#parts;
    const colour = project.view.speakers.find(({ name }) => fold(name) === fold(this.#line?.speaker ?? ""))?.colour;
    for (const row of this.#list.children) {
      const take = this.#takes.find(({ take_id: takeId }) => takeId === row.dataset.take);
      const canvas = row.querySelector(".take-wave");
      const known = take && !take.gone ? peaks.of(take) : null;
      const { clientWidth: width, clientHeight: height } = canvas;
      if (!known || !width || canvas.dataset.drawn === String(width)) continue;
      canvas.dataset.drawn = String(width);
      paintWave(canvas, known, safeColour(colour), { width, height });
    }
  }

  #accept(takeId) {
    this.#parts.commands.accept(takeId, !this.#accepted.includes(takeId));
  }

  #row(take) {
    const { number } = take;
    const row = fromTemplate("take-template");
    const chosen = take.take_id === this.#line.take?.take_id;
    const find = (name) => row.querySelector(`.take-${name}`);
    row.dataset.take = take.take_id;
    setData(row, "chosen", String(chosen));
    setText(find("name"), t`Take ${number}`);
    const seed = take.seed === null || take.seed === undefined ? "" : t`, seed ${take.seed}`;
    const score = take.score ? t`, score ${take.score}` : "";
    setText(find("length"), formatLength((take.samples ?? 0) / RATE_HZ));
    setText(find("about"), `${madeBy(take)}${take.source ? "" : seed}${score}`);
    const ofScore = take.score ? t`Score from words, voice, ends, silence and loudness. 0 is flawless; the lowest score is used.` : "";
    find("about").title = `${ofScore} ${take.distance ?? ""}`.trim();
    const changed = take.text !== undefined && take.text !== this.#line.text;
    const cut = take.cut ? t`Cut off before the end. ` : "";
    const doubts = takeIssues(take);
    const understood = take.recognised ? t`Heard: ${take.recognised}` : "";
    const words = [cut + (changed ? t`Says: ${take.text}` : ""), this.#patchOf(take), ...doubts, understood];
    setText(find("text"), words.filter(Boolean).join(" ").trim());
    setData(row, "doubtful", String(doubts.length > 0));
    setHidden(find("fine"), doubts.length === 0);
    this.#bind(find("fine"), t`Approve take ${number}`, () => this.#accept(take.take_id));
    this.#bind(find("play"), t`Play take ${number}`, () => this.#play(take));
    this.#bind(find("star"), t`Star for take ${number}`, () =>
      this.#parts.commands.star(take.take_id, !this.#starred.includes(take.take_id)));
    this.#bind(find("choose"), t`Use take ${number}`, () => this.#choose(take.take_id));
    find("choose").setAttribute("aria-pressed", String(chosen));
    setText(find("choose"), chosen ? t`In use` : t`Use`);
    this.#bind(find("lock"), t`Protect take ${number}`, () => this.#lock(take));
    find("lock").setAttribute("aria-pressed", String(Boolean(take.locked)));
    this.#bind(find("delete"), t`Delete take ${number}`, () => this.#delete(take));
    find("delete").disabled = chosen || take.locked;
    if (take.gone) this.#offerAgain(take, number, find);
    return row;
  }

  /** Which part of a take was said again, and whose the rest is. @returns {string} a sentence, empty for a whole take */
  #patchOf({ patch }) {
    if (!patch) return "";
    const [from, to] = [patch.start, patch.end].map((at) => formatDecimal(at / RATE_HZ, 1));
    const source = this.#takes.find(({ take_id: takeId }) => takeId === patch.take_id);
    const rest = source ? t`take ${source.number}` : t`an earlier take`;
    return t`Regenerated from ${from} to ${to} s; the rest is ${rest}.`;
  }

  /** A freed take: it can't be played, but rendered again. */
  #offerAgain(take, number, find) {
    find("play").disabled = true;
    setText(find("about"), t`${find("about").textContent}. Its audio was cleaned up.`);
    const again = fromTemplate("take-again-template");
    find("choose").replaceWith(again);
    this.#bind(again, t`Regenerate take ${number}`, () => this.#makeAgain(take));
  }

  async #makeAgain({ take_id: takeId }) {
    const { commands, project } = this.#parts;
    const { line_id: lineId, chosen } = this.#line;
    if (chosen !== takeId) commands.choose(lineId, takeId);
    try {
      await project.render([lineId]);
    } catch (error) {
      showError(t`Couldn’t regenerate it`, error);
    }
  }

  #bind(button, label, press) {
    button.setAttribute("aria-label", label);
    button.addEventListener("click", press);
  }

  #play({ take_id: takeId }) {
    if (!this.#audio.paused && this.#heard === takeId) return this.#hush();
    if (takeId !== this.#line.take?.take_id) this.#rival = takeId;
    return this.#hear(takeId, 0);
  }

  /** @param {string} takeId @param {number} at seconds */
  #hear(takeId, at) {
    this.#hush();
    this.#parts.player.stop();
    this.#heard = takeId;
    this.#audio.src = api.takeUrl(this.#parts.project.id, this.#line.line_id, takeId);
    this.#audio.currentTime = at;
    this.#showPlaying(takeId);
    this.#showMarks();
    this.#audio.play().catch(() => this.#hush());
  }

  #hush() {
    this.#audio.pause();
    this.#showPlaying(null);
  }

  /** @param {string | null} takeId of the take that plays */
  #showPlaying(takeId) {
    for (const row of this.#list.children) {
      row.querySelector(".take-play").setAttribute("aria-pressed", String(row.dataset.take === takeId));
    }
  }

  async #lock({ take_id: takeId, locked }) {
    const { line_id: lineId } = this.#line;
    this.#parts.project.edit([{ op: "lock_take", take_id: takeId, locked: !locked }]);
    await this.#parts.project.flush();
    if (lineId === this.#line?.line_id) await this.#load(lineId);
  }

  #delete({ take_id: takeId, number }) {
    const { project, commands } = this.#parts;
    project.edit([{ op: "delete_take", take_id: takeId }]);
    showDone(t`Take ${number} deleted.`, { label: t`Undo`, press: () => commands.travel("undo") });
    this.#known = "";
  }
}

/** Who said a take. @param {import("../core/types").Take} take */
function madeBy({ source, backend }) {
  if (!source) return backend;
  return source === "acted" ? t`recorded, voice by ${backend}` : t`recorded`;
}
