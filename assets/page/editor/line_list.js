/** The dialog as rows. An edit updates only its own rows; rows outside of the view are never laid out. */
import { bus } from "../core/bus.js";
import { afterPaint, byId, fromTemplate, safeColour, setData, setHidden, setText } from "../core/dom.js";
import { fold, formatCount, formatLength } from "../core/format.js";
import { t, translateServer } from "../core/texts.js";
import { RATE_HZ } from "../document/document.js";
import { rowBelow, RowGroups } from "./row_groups.js";
import { FoldedSections } from "./sections.js";

/** @import { Line } from "../core/types" */

const STATE_WORDS = {
  none: "",
  queued: t`waiting`,
  generating: t`reading`,
  ready: t`ready`,
  stale: t`changed`,
  failed: t`failed`,
};

const TEMPLATES = { silence: "pause-template" };
/** What a row that isn't spoken is called. */
export const WHAT = { heading: t`Heading`, note: t`Note`, action: t`Action` };

/** A row for a line; its kind never changes. */
export class LineRow {
  #number = "";
  #labelled = "";
  #hints = [];
  #hinted = "";
  #mark = null;
  #badges = null;
  #badged = "";

  /** @param {Line} line */
  constructor(line) {
    this.kind = line.kind;
    this.isUnspoken = Boolean(line.unspoken);
    this.root = fromTemplate(this.isUnspoken ? "unspoken-template" : TEMPLATES[line.kind] ?? "line-template");
    this.root.dataset.line = line.line_id;
    this.root.dataset.kind = line.kind;
    const find = (name) => this.root.querySelector(`.line-${name}`);
    this.number = find("number");
    this.play = find("play");
    this.text = find("text");
    this.speaker = find("speaker");
    this.state = find("state");
    this.length = find("length");
    this.takes = find("takes");
    this.reason = find("reason");
    this.seconds = find("seconds");
    this.what = find("what");
    this.fold = find("fold");
    this.wave = find("wave");
    this.record = find("record");
    if (line.kind === "audio") this.#beRecording();
  }

  #beRecording() {
    this.record.remove();
    this.text.removeAttribute("contenteditable");
    this.speaker.disabled = true;
    this.file = fromTemplate("file-template");
    this.speaker.after(this.file);
  }

  /** @param {string[]} messages what the voice would make of it that may not be meant */
  hint(messages) {
    if (this.kind === "silence") return;
    this.#hints = messages;
    this.#showWhy(this.line);
  }

  /** @param {{kind: string, text: string, title: string}[]} badges how it is said */
  badge(badges) {
    if (!this.#badges && !badges.length) return;
    const badged = JSON.stringify(badges);
    if (this.#badged === badged) return;
    this.#badged = badged;
    if (!this.#badges) this.speaker.after((this.#badges = fromTemplate("badges-template")));
    this.#badges.replaceChildren(...badges.map(badgeOf));
    this.#badges.setAttribute("aria-label", badges.map(({ title }) => title).join(", "));
    setHidden(this.#badges, badges.length === 0);
  }

  /** The error, warnings and issues of a line; nothing is shown twice. */
  #showWhy({ state, message }) {
    const failed = state === "failed" && !(this.kind === "audio" && this.#hints.length);
    const why = translateServer(message ?? "");
    this.#showHints(this.#hints.filter((hint) => !failed || hint !== why).join(" "));
    setText(this.reason, failed ? why : "");
    setHidden(this.reason, !failed);
  }

  #showHints(text) {
    if (this.#hinted === text) return;
    this.#hinted = text;
    if (!this.#mark) this.speaker.parentElement.append((this.#mark = fromTemplate("hint-template")));
    setText(this.#mark.querySelector(".hint-text"), text);
    this.#mark.title = text;
    setHidden(this.#mark, text === "");
  }

  /** @param {Line} line @param {string} colour of its speaker */
  write(line, colour) {
    this.line = line;
    if (this.isUnspoken) return this.#writeUnspoken(line);
    if (this.kind === "silence") return this.#writePause(line);
    if (this.colour !== colour) {
      this.root.style.setProperty("--colour", (this.colour = safeColour(colour)));
    }
    setText(this.speaker, line.kind === "audio" ? t`Recording` : line.speaker || t`No speaker`);
    this.#writeText(line.kind === "audio" ? recordingTitle(line) : line.text);
    if (line.kind === "audio") this.#writeFile(line);
    this.#writeState(line);
  }

  #writeFile({ take, locked }) {
    setText(this.file, take ? t`Replace` : t`Choose a file`);
    this.file.disabled = Boolean(locked);
  }

  /** During typing, leave spaces at the ends and the caret alone. */
  #writeText(text) {
    const shown = this.text.textContent;
    if (document.activeElement !== this.text) return setText(this.text, text);
    if (shown === text || plain(shown) === plain(text)) return undefined;
    const at = getSelection().focusOffset;
    this.text.textContent = text;
    const node = this.text.firstChild;
    if (node) getSelection().collapse(node, Math.min(at, node.textContent.length));
    return undefined;
  }

  /** The text has lost the focus: show it as it is stored. */
  settle() {
    if (this.kind === "speech" || this.isUnspoken) setText(this.text, this.line.text);
  }

  /** @param {number} number of the line among what is spoken, or of the pause before it */
  renumber(number) {
    this.#number = String(number);
    if (this.kind !== "silence" && !this.isUnspoken) setText(this.number, this.#number);
  }

  /** Name its controls by its number. */
  label() {
    const text = this.#number;
    if (this.#labelled === text || this.isUnspoken) return;
    this.#labelled = text;
    if (this.kind === "silence") return this.seconds.setAttribute("aria-label", t`Pause after line ${text}, seconds`);
    this.file?.setAttribute("aria-label", t`Audio file of line ${text}`);
    this.text.setAttribute("aria-label", t`Text of line ${text}`);
    this.play.setAttribute("aria-label", t`Play line ${text}`);
    this.record?.setAttribute("aria-label", t`Record line ${text}`);
  }

  #writeUnspoken({ unspoken, text }) {
    setData(this.root, "state", "ready");
    setData(this.root, "unspoken", unspoken);
    this.what.value = unspoken;
    this.#writeText(text);
    this.text.setAttribute("aria-label", t`${WHAT[unspoken]}, not spoken`);
    for (const button of [this.play, this.fold]) setHidden(button, unspoken !== "heading");
    this.play.setAttribute("aria-label", t`Play the section ${text}`);
    this.fold.setAttribute("aria-label", t`Fold the section ${text}`);
  }

  /** @param {boolean} folded whether the lines below this heading are hidden */
  showFold(folded) {
    this.fold?.setAttribute("aria-expanded", String(!folded));
  }

  #writePause({ duration_s: seconds }) {
    setData(this.root, "state", "ready");
    if (document.activeElement !== this.seconds) this.seconds.value = String(seconds);
  }

  #writeState(line) {
    const { state, samples, take, n_takes: takes, locked } = line;
    const isSilent = state === "ready" && samples === 0;
    setData(this.root, "state", isSilent ? "silent" : state);
    setData(this.root, "locked", String(Boolean(locked)));
    setText(this.state, isSilent ? t`no sound` : (STATE_WORDS[state] ?? state));
    const hasSound = take || state === "ready" || state === "stale";
    setText(this.length, hasSound && samples ? formatLength(samples / RATE_HZ) : "");
    setText(this.takes, takes > 1 ? formatCount(takes, "take") : "");
    setHidden(this.takes, !(takes > 1));
    this.#showWhy(line);
  }
}

function badgeOf({ kind, text, title }) {
  const badge = document.createElement("span");
  badge.className = "line-badge";
  badge.dataset.badge = kind;
  badge.title = title;
  badge.dir = "auto";
  badge.textContent = text;
  return badge;
}

/** A recording's original name, without the suffix that distinguishes files of the same name. */
export function recordingTitle({ path, take }) {
  return take ? path.replace(/-[0-9a-f]{8}(\.[^.]+)$/, "$1") : path;
}

function plain(text) {
  return text.replace(/\s+/g, " ").trim();
}

const LOOKS = 8;
const STILL_MS = 100;

/** Renders the project's lines as rows, and finds the line of an element. */
export class LineList {
  #list = byId("lines");
  #groups = new RowGroups(this.#list);
  #rows = new Map();
  #shown = [];
  #colours = new Map();
  #playing = null;
  #followed = false;
  /** The target of a scroll that is under way. */
  #aim = null;
  #sounding = null;
  #project;
  #warningsOf;
  #folded = new FoldedSections();
  /** Of a filter; null for all. @type {Set<string> | null} */
  #only = null;

  /** @param {import("../document/project.js").Project} project @param {(lineId: string) => string[]} warningsOf a line */
  constructor(project, warningsOf) {
    this.#project = project;
    this.#warningsOf = warningsOf;
    bus.on("project.changed", (change) => this.#change(change));
  }

  /** @param {string} lineId @returns {LineRow | undefined} */
  row(lineId) {
    return this.#rows.get(lineId);
  }

  /** @param {EventTarget} element @returns {string | null} the line it stands in */
  lineOf(element) {
    return element instanceof Element ? (element.closest(".line")?.getAttribute("data-line") ?? null) : null;
  }

  colour(speaker) {
    return this.#colours.get(fold(speaker ?? ""));
  }

  /** Highlight the line that is playing. @param {string | null} lineId */
  follow(lineId, { reveal = true } = {}) {
    const row = this.#rows.get(lineId) ?? null;
    if (row === this.#playing && reveal === this.#followed) return;
    this.#playing?.root.removeAttribute("aria-current");
    [this.#playing, this.#followed] = [row, reveal];
    row?.root.setAttribute("aria-current", "true");
    if (row && reveal && !this.#isFiltered(lineId)) this.reveal(lineId);
  }

  /** Turn the button of one line into pause, and that of the previous one back into play. */
  sounding(lineId) {
    const row = this.#rows.get(lineId) ?? null;
    if (row === this.#sounding) return;
    this.#sounding?.play?.setAttribute("aria-pressed", "false");
    row?.play?.setAttribute("aria-pressed", "true");
    this.#sounding = row;
  }

  /**
   * Scroll a line into view, unless it is visible. Heights of rows that were never laid out are estimates, so
   * the position is corrected afterwards.
   */
  reveal(lineId, { calm = false, looks = LOOKS } = {}) {
    const row = this.#rows.get(lineId);
    if (row?.root.hidden) this.#uncover(lineId);
    if (looks === LOOKS) this.#aim = lineId;
    if (!row || this.#aim !== lineId || (looks === LOOKS && this.#isSeen(row))) return;
    const view = this.#list.getBoundingClientRect();
    const by = this.#isSeen(row) ? 0 : row.root.getBoundingClientRect().top - view.top - view.height / 3;
    const still = calm || Math.abs(by) > view.height || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const again = () => looks && this.reveal(lineId, { calm: true, looks: looks - 1 });
    if (by) this.#list.scrollBy({ top: by, behavior: still ? "auto" : "smooth" });
    if (still) requestAnimationFrame(again);
    else this.#afterScroll(again);
  }

  /** Safari before 26.2 has no `scrollend` event: there a scroll has ended when the list stops moving. */
  #afterScroll(then) {
    if ("onscrollend" in window) return this.#list.addEventListener("scrollend", then, { once: true });
    const place = this.#list.scrollTop;
    return setTimeout(() => (this.#list.scrollTop === place ? then() : this.#afterScroll(then)), STILL_MS);
  }

  /** Hide or show the lines below a heading. @param {string} lineId of the heading */
  fold(lineId, folded = !this.#folded.has(lineId)) {
    this.#folded.set(lineId, folded);
    this.#showFolds();
  }

  /** Show these rows only. @param {Set<string> | null} lineIds null: all */
  only(lineIds) {
    if (lineIds === this.#only) return;
    this.#only = lineIds;
    this.#showFolds();
  }

  /** The lines that a filter shows, in order. @returns {string[]} */
  get listed() {
    const { order } = this.#project.view;
    return this.#only ? order.filter((lineId) => this.#only.has(lineId)) : order;
  }

  #isFiltered(lineId) {
    return this.#only !== null && !this.#only.has(lineId);
  }

  /** Somebody goes to a line that is hidden. */
  #uncover(lineId) {
    const { order, lines } = this.#project.view;
    this.#only?.add(lineId);
    const heading = this.#folded.hidden(order, lines).get(lineId);
    if (heading) this.fold(heading, false);
    else this.#showFolds();
  }

  #showFolds() {
    const { order, lines } = this.#project.view;
    const hidden = this.#folded.hidden(order, lines);
    for (const [lineId, row] of this.#rows) {
      const isHidden = hidden.has(lineId) || this.#isFiltered(lineId);
      if (row.root.hidden !== isHidden) this.#groups.touch(row.root);
      setHidden(row.root, isHidden);
      row.showFold(this.#folded.has(lineId));
    }
  }

  /** The user scrolls the list: stop scrolling it automatically. */
  letGo() {
    this.#aim = null;
  }

  /** Whether a line is visible. @param {string} lineId */
  sees(lineId) {
    const row = this.#rows.get(lineId);
    return row !== undefined && this.#isSeen(row);
  }

  #isSeen(row) {
    const box = row.root.getBoundingClientRect();
    const view = this.#list.getBoundingClientRect();
    return box.top >= view.top + 8 && box.bottom <= view.bottom - 24;
  }

  #change({ ids, order, meta }) {
    const recoloured = meta && this.#learnColours();
    if (order) this.#arrange();
    const touched = recoloured ? this.#rows.keys() : ids;
    for (const lineId of touched) this.#write(lineId);
    this.#folded.open(this.#project.id);
    if (order || this.#folded.any || this.#only) this.#showFolds();
  }

  #learnColours() {
    const before = JSON.stringify([...this.#colours]);
    this.#colours = new Map(
      this.#project.view.speakers.map(({ name, colour }) => [fold(name), colour]),
    );
    return JSON.stringify([...this.#colours]) !== before;
  }

  #write(lineId) {
    const line = this.#project.line(lineId);
    if (line) this.#rows.get(lineId)?.write(line, this.colour(line.speaker));
  }

  /** Put the rows in order; those in the right place aren't moved, so that the focus stays. */
  #arrange() {
    const { order, lines } = this.#project.view;
    for (const lineId of this.#shown) if (!lines.has(lineId)) this.#forget(lineId);
    let next = this.#groups.first;
    let above = null;
    for (const lineId of order) {
      const root = (this.#rows.get(lineId) ?? this.#grow(lines.get(lineId))).root;
      if (root === next) next = rowBelow(next);
      else if (next && rowBelow(next) === root) {
        this.#groups.put(next, this.#groups.last);
        next = rowBelow(root);
      } else this.#groups.put(root, above);
      above = root;
    }
    this.#shown = order;
    this.#renumber();
    setHidden(byId("lines-empty"), order.length > 0);
    this.#list.setAttribute("aria-rowcount", String(order.length));
  }

  #forget(lineId) {
    this.#groups.remove(this.#rows.get(lineId).root);
    this.#rows.delete(lineId);
  }

  #grow(line) {
    const row = new LineRow(line);
    this.#rows.set(line.line_id, row);
    row.write(line, this.colour(line.speaker));
    row.hint(this.#warningsOf(line.line_id));
    return row;
  }

  #renumber() {
    let number = 0;
    for (const lineId of this.#shown) {
      const row = this.#rows.get(lineId);
      if (row.kind !== "silence") number += 1;
      row.renumber(number);
    }
    this.#label();
  }

  #label = afterPaint(() => this.#rows.forEach((row) => row.label()));
}
