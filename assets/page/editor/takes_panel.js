/** The takes of one line, to compare: play, choose, lock, delete. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, focusedElement, fromTemplate, setData, setHidden, setText } from "../core/dom.js";
import { formatLength } from "../core/format.js";
import { showError } from "../core/notices.js";
import { t } from "../core/texts.js";
import { RATE_HZ, takeIssues } from "../document/document.js";
import { followVolume } from "../playback/audio_clock.js";

/** @import { Line, Parts } from "../core/types" */

export class TakesPanel {
  #list = byId("takes");
  #audio = followVolume(new Audio());
  #parts;
  #line = null;
  #takes = [];
  #known = "";
  // Counts what is to be shown: of lists that overtake each other, the last asked for counts.
  #asked = 0;
  #button = null;

  /** @param {Pick<Parts, "project" | "commands" | "player">} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#audio.addEventListener("ended", () => this.#hush());
    bus.on("project.changed", () => this.#showAccepted());
  }

  /** @param {Line | null} line whose takes are shown */
  show(line) {
    const isSame = line?.line_id === this.#line?.line_id;
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

  #put(takes) {
    this.#hush();
    this.#takes = takes;
    const held = this.#held();
    setHidden(byId("takes-part"), takes.length === 0);
    this.#list.replaceChildren(...takes.map((take, at) => this.#row(take, takes.length - at)));
    this.#showAccepted();
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

  /** The takes that were accepted in spite of their quality issues. */
  #showAccepted() {
    for (const row of this.#list.children) {
      const accepted = this.#accepted.includes(row.dataset.take);
      row.querySelector(".take-fine").setAttribute("aria-pressed", String(accepted));
    }
  }

  #accept(takeId) {
    this.#parts.commands.accept(takeId, !this.#accepted.includes(takeId));
  }

  #row(take, number) {
    const row = fromTemplate("take-template");
    const chosen = take.take_id === this.#line.take?.take_id;
    const find = (name) => row.querySelector(`.take-${name}`);
    row.dataset.take = take.take_id;
    setData(row, "chosen", String(chosen));
    setText(find("name"), t`Take ${number}`);
    const seed = take.seed === null || take.seed === undefined ? "" : t`, seed ${take.seed}`;
    const score = take.score ? t`, score ${take.score}` : "";
    setText(find("about"), `${formatLength((take.samples ?? 0) / RATE_HZ)}, ${take.backend}${seed}${score}`);
    const ofScore = take.score ? t`Score from words, voice, ends, silence and loudness. 0 is flawless; the lowest score is used.` : "";
    find("about").title = `${ofScore} ${take.distance ?? ""}`.trim();
    const changed = take.text !== undefined && take.text !== this.#line.text;
    const cut = take.cut ? t`Cut off before the end. ` : "";
    const doubts = takeIssues(take);
    const understood = take.recognised ? t`Heard: ${take.recognised}` : "";
    const words = [cut + (changed ? t`Says: ${take.text}` : ""), this.#patchOf(take), ...doubts, understood];
    setText(find("text"), words.filter(Boolean).join(" ").trim());
    setHidden(find("fine"), doubts.length === 0);
    this.#bind(find("fine"), t`Approve take ${number}`, () => this.#accept(take.take_id));
    this.#bind(find("play"), t`Play take ${number}`, ({ currentTarget }) => this.#play(take, currentTarget));
    this.#bind(find("choose"), t`Use take ${number}`, () => this.#parts.commands.choose(this.#line.line_id, take.take_id));
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
    const [from, to] = [patch.start, patch.end].map((at) => (at / RATE_HZ).toFixed(1));
    const source = this.#takes.findIndex(({ take_id: takeId }) => takeId === patch.take_id);
    const rest = source < 0 ? t`an earlier take` : t`take ${this.#takes.length - source}`;
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

  #play(take, button) {
    const again = this.#button === button;
    this.#hush();
    if (again) return;
    this.#parts.player.stop();
    this.#button = button;
    button.setAttribute("aria-pressed", "true");
    this.#audio.src = api.takeUrl(this.#parts.project.id, this.#line.line_id, take.take_id);
    this.#audio.play().catch(() => this.#hush());
  }

  #hush() {
    this.#audio.pause();
    this.#button?.setAttribute("aria-pressed", "false");
    this.#button = null;
  }

  async #lock({ take_id: takeId, locked }) {
    const { line_id: lineId } = this.#line;
    this.#parts.project.edit([{ op: "lock_take", take_id: takeId, locked: !locked }]);
    await this.#parts.project.flush();
    if (lineId === this.#line?.line_id) await this.#load(lineId);
  }

  #delete(take) {
    this.#parts.project.edit([{ op: "delete_take", take_id: take.take_id }]);
    this.#known = "";
  }
}
