/** Edit commands on lines; every action of mouse and keyboard calls one of them. */
import { bus } from "../core/bus.js";
import { formatCount } from "../core/format.js";
import { announce, showDone, showError, showNotice } from "../core/notices.js";
import { t } from "../core/texts.js";
import { newId } from "../document/document.js";

/** @import { LineFields } from "../core/types" */

const PAUSE_S = 0.5;
const COPIED = ["kind", "speaker", "text", "language", "seed", "params", "duration_s", "path", "unspoken"];

export class Commands {
  #project;
  #selection;

  /** @param {import("../document/project.js").Project} project */
  constructor(project, selection) {
    this.#project = project;
    this.#selection = selection;
  }

  /** Add a line after the current one, with the speaker that the user most likely wants. */
  add() {
    const after = this.#selection.current ?? this.#project.view.order.at(-1) ?? null;
    const line = { line_id: newId(), kind: "speech", speaker: this.#nextSpeaker(after), text: "" };
    this.#insert(after, [line]);
    bus.emit("text.edit", { lineId: line.line_id });
  }

  /** Add a pause after a line. */
  addPause(after = this.#selection.current ?? this.#project.view.order.at(-1) ?? null) {
    const line = { line_id: newId(), kind: "silence", duration_s: PAUSE_S };
    this.#insert(after, [line]);
    this.#selection.go(line.line_id);
    this.#selection.focus();
  }

  /** Add a heading, which begins a section, after a line. */
  addHeading(after = this.#selection.current ?? this.#project.view.order.at(-1) ?? null) {
    const line = { line_id: newId(), kind: "silence", duration_s: 0, unspoken: "heading", text: "" };
    this.#insert(after, [line]);
    bus.emit("text.edit", { lineId: line.line_id });
  }

  duplicate(lineIds = this.#selection.ids) {
    const copies = lineIds.map((lineId) => copyOf(this.#project.line(lineId)));
    if (!copies.length) return;
    this.#insert(lineIds.at(-1), copies);
    this.#selection.set(copies.map(({ line_id: lineId }) => lineId));
    this.#selection.focus();
  }

  delete(lineIds = this.#selection.ids) {
    if (!lineIds.length) return;
    const { order } = this.#project.view;
    const gone = new Set(lineIds);
    const from = order.indexOf(lineIds[0]);
    const next =
      order.slice(from).find((lineId) => !gone.has(lineId)) ??
      order.slice(0, from).findLast((lineId) => !gone.has(lineId)) ?? null;
    this.#project.edit([{ op: "delete", line_ids: lineIds }]);
    announce(t`${formatCount(lineIds.length, "line")} deleted. Press Ctrl+Z to undo.`);
    this.#selection.go(next);
    this.#selection.focus();
  }

  /** Move the selected lines by one place. @param {number} by -1 or 1 */
  shift(by) {
    const { order } = this.#project.view;
    const ids = this.#selection.ids;
    const marked = new Set(ids);
    const rest = order.filter((lineId) => !marked.has(lineId));
    const first = order.indexOf(ids[0]);
    const before = order.slice(0, Math.max(0, first)).filter((lineId) => !marked.has(lineId)).length;
    const place = before + by;
    if (!ids.length || place < 0 || place > rest.length) return;
    this.move(ids, rest[place - 1] ?? null);
  }

  /** @param {string[]} lineIds @param {string | null} after which line; null for the beginning */
  move(lineIds, after) {
    if (lineIds.includes(after)) return;
    this.#project.edit([{ op: "move", line_ids: lineIds, after }]);
    this.#selection.focus();
  }

  /** Give the selected lines to a speaker. @param {string | undefined} speaker undefined: reports that there is none, and changes nothing */
  giveTo(speaker) {
    const lineIds = this.#spoken();
    const isGiven = Boolean(speaker) && lineIds.length > 0;
    if (isGiven) this.set({ speaker }, { lineIds });
    announce(isGiven ? `${formatCount(lineIds.length, "line")}: ${speaker}.` : t`Nothing changed: select a speech line first, and use the number of a character.`);
    return isGiven;
  }

  /** Split a line at the caret. */
  split(lineId, at) {
    const fresh = newId();
    this.#project.edit([{ op: "split", line_id: lineId, at, new_line_id: fresh }]);
    bus.emit("text.edit", { lineId: fresh, at: 0 });
  }

  /** Join a line to the spoken one before it; the caret stays between the two. */
  joinBack(lineId) {
    const { order } = this.#project.view;
    const before = this.#project.line(order[order.indexOf(lineId) - 1]);
    const isUnspoken = this.#project.line(lineId)?.unspoken;
    if (!before || before.kind !== "speech" || isUnspoken) return;
    const at = before.text ? before.text.length + 1 : 0;
    this.#project.edit([{ op: "join", line_ids: [before.line_id, lineId] }]);
    bus.emit("text.edit", { lineId: before.line_id, at });
  }

  /** Change the selected lines. @param {LineFields} fields */
  set(fields, { lineIds = this.#spoken(), group = null } = {}) {
    if (!lineIds.length) return;
    this.#project.edit([{ op: "set", line_ids: lineIds, fields }], { group });
  }

  lock(lineIds = this.#spoken()) {
    const locked = !lineIds.every((lineId) => this.#project.line(lineId).locked);
    this.set({ locked }, { lineIds });
    announce(locked ? t`Locked.` : t`Unlocked.`);
  }

  choose(lineId, takeId) {
    this.#project.edit([{ op: "choose", line_id: lineId, take_id: takeId }]);
  }

  /** Accept a take in spite of its quality issues, or withdraw that. */
  accept(takeId, accepted) {
    this.#project.edit([{ op: "accept_take", take_id: takeId, accepted }]);
    announce(accepted ? t`Take approved. Press Ctrl+Z to undo.` : t`The take is flagged again.`);
  }

  /** Mark a take with a star, or take it off. */
  star(takeId, starred) {
    this.#project.edit([{ op: "star_take", take_id: takeId, starred }]);
  }

  /**
   * Use a take, and free others; one undo brings all back.
   * @param {string} lineId @param {string | null} takeId to use, null to leave that as it is @param {string[]} others
   */
  keepBest(lineId, takeId, others) {
    /** @type {import("../core/types").Op[]} */
    const chosen = takeId ? [{ op: "choose", line_id: lineId, take_id: takeId }] : [];
    /** @type {import("../core/types").Op[]} */
    const freed = others.map((one) => ({ op: "delete_take", take_id: one }));
    this.#project.edit([...chosen, ...freed]);
    showDone(t`${formatCount(others.length, "take")} freed.`, { label: t`Undo`, press: () => this.travel("undo") });
  }

  /** Everything is saved automatically; send unsent edits at once. */
  async save() {
    await this.#project.flush();
    showDone(this.#project.saving === "saved" ? t`Saved.` : t`Not saved yet. Retrying automatically.`);
  }

  /** @param {"undo" | "redo"} way */
  async travel(way, how = {}) {
    showNotice("undo", {});
    try {
      await this.#project.travel(way, how);
    } catch (error) {
      if (error.kind === "EditConflict" && !how.anybodys) return this.#askAnybodys(error);
      showError(way === "undo" ? t`Can’t undo` : t`Can’t redo`, error);
    }
  }

  /** Undo steps of others only if the user asks for it. */
  #askAnybodys({ message }) {
    const act = { label: t`Undo the latest change`, press: () => this.travel("undo", { anybodys: true }) };
    showNotice("undo", { kind: "warning", title: t`Nothing to undo.`, text: message, act, dismiss: () => {} });
  }

  #spoken() {
    return this.#selection.ids.filter((lineId) => this.#project.line(lineId)?.kind === "speech");
  }

  #insert(after, lines) {
    this.#project.edit([{ op: "insert", after, lines }]);
  }

  /** The speaker before the last one, who usually speaks next in a dialog. */
  #nextSpeaker(after) {
    const { order, speakers } = this.#project.view;
    const said = order
      .slice(0, order.indexOf(after) + 1)
      .map((lineId) => this.#project.line(lineId))
      .filter(({ kind }) => kind === "speech");
    const last = said.at(-1)?.speaker;
    return said.findLast(({ speaker }) => speaker !== last)?.speaker ?? last ?? speakers[0]?.name ?? "Speaker 1";
  }
}

function copyOf(line) {
  const copy = Object.fromEntries(COPIED.map((name) => [name, line[name]]));
  return { ...copy, line_id: newId() };
}
