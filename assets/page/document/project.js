/** The open project: the studio's state, with this page's unacknowledged edits applied on top. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { CLIENT_ID, sessionStore } from "../core/local_store.js";
import { documentOf, EMPTY_DOCUMENT, isMissing, isPending, newId, withChanges, withOps, withSteps } from "./document.js";
import { EventStream } from "./event_stream.js";
import { Outbox } from "./outbox.js";

/** @import { Batch, DialogDocument, EditAnswer, Line, Op, ProjectBody } from "../core/types" */

/** Deleted lines, so that one can be inserted again that somebody else deleted during an edit. */
export class DeletedLines {
  #lines = new Map();

  /** @param {DialogDocument} old @param {DialogDocument} now states of the dialog, one after the other */
  remember(old, now) {
    let after = null;
    for (const lineId of old.order) {
      if (now.lines.has(lineId)) after = lineId;
      else this.#lines.set(lineId, { line: old.lines.get(lineId), after });
    }
  }

  /** @returns {{line: Line, after: string | null} | undefined} a line, and the line that was before it */
  of(lineId) {
    return this.#lines.get(lineId);
  }

  clear() {
    this.#lines.clear();
  }
}

const PAGE_KEY = "tableread.page";

/**
 * The id of this page: the part before the dash is the same for all pages of a browser. A reloaded page takes the id of
 * the one before, so that edits which that one still sent aren't somebody else's; a copied tab finds none to take.
 */
const PAGE_ID = sessionStore.get(PAGE_KEY) ?? newId();
const CLIENT = `${CLIENT_ID}-${PAGE_ID}`;
sessionStore.remove(PAGE_KEY);

/** Emits the `project.*` events on the page's bus. */
export class Project {
  #base = EMPTY_DOCUMENT;
  /** Answers to edits whose events are still to come. @type {EditAnswer[]} */
  #answers = [];
  /** The view that `#lines` are those of; each change makes another one. */
  #listed = null;
  /** @type {Line[]} */
  #lines = [];
  #steps = [];
  #jobSteps = 0;
  #jobAt_ms = 0;
  #live = null;
  #outbox = null;
  #deletedLines = new DeletedLines();
  #engine = null;

  #needsStream;

  /** @param {{needsStream?: () => boolean}} [how] whether even a hidden tab needs what happens to the project */
  constructor({ needsStream = () => false } = {}) {
    this.#needsStream = needsStream;
    this.id = null;
    this.view = EMPTY_DOCUMENT;
    this.job = null;
    this.notices = [];
    addEventListener("pagehide", () => {
      bus.emit("project.flushing");
      this.#outbox?.leave();
      sessionStore.set(PAGE_KEY, PAGE_ID);
    });
    // The browser may suspend the page and resume it later.
    addEventListener("pageshow", ({ persisted }) => {
      if (!persisted) return;
      sessionStore.remove(PAGE_KEY);
      this.#outbox?.flush();
    });
    bus.on("library.changed", () => this.look());
    bus.on("engine.state", ({ backend }) => this.#followEngine(backend.name));
  }

  /** @returns {"saved" | "saving" | "offline"} */
  get saving() {
    return this.#outbox?.state ?? "saved";
  }

  /** Why the studio takes no edits now. @returns {Error | null} */
  get trouble() {
    return this.#outbox?.trouble ?? null;
  }

  /** Whether unsent edits survive the page. */
  get kept() {
    return this.#outbox?.kept ?? true;
  }

  /** Batches with a conflict. @returns {Batch[]} */
  get aside() {
    return this.#outbox?.aside ?? [];
  }

  /** The lines with a conflict. @returns {Set<string>} */
  get disputed() {
    return new Set(this.aside.flatMap(({ error }) => error.conflicts.map((one) => one.line_id)));
  }

  /** The script that is being sent, if any. @returns {string | undefined} */
  get unsentScript() {
    return this.#outbox?.script;
  }

  /** The latest revision that this page knows. */
  get rev() {
    return this.#base.rev;
  }

  get rendering() {
    return isRunning(this.job);
  }

  /** Seconds until the render is done, by now. @returns {number | null} null while too little is known */
  get remaining_s() {
    const left = this.job?.summary?.remaining_s ?? null;
    return left === null || !this.rendering ? null : Math.max(0, left - (performance.now() - this.#jobAt_ms) / 1000);
  }

  /** Lines in order; nobody changes the list. @returns {Line[]} */
  get lines() {
    const { view } = this;
    if (this.#listed !== view) {
      this.#listed = view;
      this.#lines = view.order.map((lineId) => view.lines.get(lineId)).filter(Boolean);
    }
    return this.#lines;
  }

  line(lineId) {
    return this.view.lines.get(lineId);
  }

  /** A deleted line, and the line that was before it. @returns {{line: Line, after: string | null} | undefined} */
  deletedLine(lineId) {
    return this.#deletedLines.of(lineId);
  }

  /** Show another project. @param {ProjectBody} body */
  async open(body) {
    await this.leave();
    this.#close(); // another project was opened meanwhile
    this.id = body.project_id;
    this.#outbox = new Outbox(this.id, api.batchSender(this.id));
    this.#outbox.events.on("state", () => bus.emit("project.saving"));
    this.#outbox.events.on("taken", (about) => this.#taken(about));
    this.#outbox.events.on("refused", (about) => this.#refused(about));
    this.#outbox.events.on("conflict", () => this.#conflict());
    this.#outbox.events.on("failed", () => this.#dropped("project.failed"));
    this.#base = EMPTY_DOCUMENT;
    this.notices = [];
    this.#adopt(body);
    this.#deletedLines.clear();
    this.#live = new EventStream(this.id, body.seq, this.#needsStream, (now) => this.#isBehind(now));
    this.#live.events.on("step", (step) => this.#step(step));
    this.#live.events.on("body", (now) => this.#adopt(now));
    this.#live.events.on("gone", () => bus.emit("project.gone"));
    this.#live.events.on("state", (parts) => bus.emit("engine.changed", parts));
    this.#live.events.on("lost", (error) => bus.emit("connection.lost", error));
    bus.emit("project.saving");
    bus.emit("project.opened");
  }

  /** Send unsent edits and stop listening. */
  async leave() {
    await this.flush();
    this.#close();
  }

  #close() {
    const unsent = this.#outbox?.unsent;
    this.#outbox?.close();
    this.#live?.leave();
    this.#steps = [];
    if (unsent) bus.emit("project.left", { id: this.id, name: this.view.name });
  }

  /** Change the dialog at once, and send the edit to the studio. @param {Op[]} ops */
  edit(ops, { group = null } = {}) {
    this.#outbox.push({ ops, client: CLIENT, base_rev: this.#base.rev, group });
    this.#rebuild();
  }

  /** Change a setting of the project; by arrow keys, too, it is one step of undo. @param {import("../core/types").ProjectSettings} fields */
  editSettings(fields) {
    this.edit([{ op: "settings", fields }], { group: `settings ${Object.keys(fields)}` });
  }

  /** Resolve when the studio has all edits, or can't be reached; unfinished typing is sent first. */
  async flush() {
    bus.emit("project.flushing");
    await this.#outbox?.flush();
  }

  /** Undo the latest step, of this user first, or redo. @param {"undo" | "redo"} way */
  async travel(way, { anybodys = false } = {}) {
    const { id } = this;
    await this.flush();
    if (id !== this.id) return;
    const about = { base_rev: this.#base.rev, client: CLIENT };
    const answer = await api[way](id, way === "undo" ? { ...about, own: !anybodys } : about);
    if (id === this.id) this.#answered(answer);
  }

  /** Change the lines to those of a whole script. @param {string} text @param {number} baseRev the revision it was written on */
  putScript(text, baseRev) {
    this.#outbox.push({ ops: [], text, client: CLIENT, base_rev: baseRev, group: "script" });
  }

  /** Change a project that needn't be the open one any more. @param {string} id @param {Op[]} ops @param {number} baseRev */
  async editIn(id, ops, baseRev) {
    if (id === this.id) return this.edit(ops);
    return void (await api.sendEdit(id, { edit_id: newId(), client: CLIENT, base_rev: baseRev, group: null, ops }));
  }

  /** Resolve the conflict of a batch. @param {Batch} batch @param {Op[]} ops made of it now */
  settle(batch, ops = []) {
    this.#outbox.settle(batch);
    if (ops.length) this.edit(ops);
    bus.emit("project.settled");
  }

  /** Render lines, or all that are missing or outdated. @param {Array<string> | null} lineIds */
  async render(lineIds, { again = false, listenFrom = null } = {}) {
    const { id } = this;
    await this.flush();
    if (id !== this.id) return;
    const expected = this.#expect(lineIds, again);
    const body = { line_ids: lineIds, again, listen_from: listenFrom };
    const seenSteps = this.#jobSteps;
    try {
      const job = await api.startRender(id, body);
      // A fast voice may be done before the response arrives; the stream's state is then newer.
      if (id === this.id && seenSteps === this.#jobSteps) this.#setJob(job);
      // A state that was asked for before the render may have come after it was begun.
      const lines = expected.map(({ line_id: lineId }) => this.view.lines.get(lineId));
      if (id === this.id && lines.some((line) => line && isMissing(line))) await this.#live.again();
    } catch (error) {
      if (id === this.id) await this.#live.again();
      throw error;
    }
  }

  /** Fetch the current state: a voice or the engine changed, and with it which lines are outdated. */
  look() {
    return this.#live?.again();
  }

  /**
   * Say words of a line again, in a take of its own. @param {string} lineId @param {{start: number, end: number}} part of its text
   * @param {AbortSignal} signal as in `#addTake` @returns {Promise<boolean>} whether it has that take now
   */
  sayAgain(lineId, part, signal) {
    return this.#addTake((id, about) => api.patchLine(id, lineId, { ...part, ...about }, signal), signal);
  }

  /**
   * Make a take of a recording of a line. @param {string} lineId @param {Blob} recording @param {boolean} acted whether the
   * engine changes it to the voice of the speaker @param {AbortSignal} signal as in `#addTake`
   * @returns {Promise<boolean>} whether it has that take now
   */
  addRecording(lineId, recording, acted, signal) {
    return this.#addTake((id, about) => api.recordLine(id, lineId, recording, { ...about, acted }, signal), signal);
  }

  /**
   * @param {(id: string, about: {edit_id: string, base_rev: number, client: string}) => Promise<EditAnswer>} ask
   * @param {AbortSignal} signal once it aborts there is no such take, also if the studio had made it already
   */
  async #addTake(ask, signal) {
    const { id } = this;
    await this.flush();
    if (id !== this.id) return false;
    const about = { edit_id: newId(), base_rev: this.#base.rev, client: CLIENT };
    try {
      this.#answered(await ask(id, about));
    } catch (error) {
      if (signal.aborted) await api.withdrawTake(id, about);
      throw error;
    }
    return true;
  }

  /** Make the changes that a program proposes, as a step of this user's. @param {string} proposalId */
  async accept(proposalId) {
    const { id } = this;
    await this.flush();
    if (id !== this.id) return;
    const answer = await api.acceptProposal(id, proposalId, { base_rev: this.#base.rev, client: CLIENT });
    if (id === this.id) this.#answered(answer);
  }

  async cancel() {
    await api.cancelRender(this.id);
  }

  focus(lineId) {
    return api.focusLine(this.id, lineId);
  }

  /** Show the lines of a render as queued at once, before the studio confirms it. */
  #expect(lineIds, again) {
    const named = lineIds?.map((lineId) => this.view.lines.get(lineId)).filter(Boolean);
    const steps = (named ?? this.lines)
      .filter((line) => line.kind !== "silence" && (again || isMissing(line)))
      .map((line) => ({ line_id: line.line_id, state: "queued" }));
    this.#base = withSteps(this.#base, steps);
    this.#rebuild();
    return steps;
  }

  /** @param {EditAnswer} answer */
  #answered({ rev, changes }) {
    if (changes && rev > this.#base.rev) {
      this.#base = withChanges(this.#base, rev, changes);
      this.#answers.push({ rev, changes });
    }
    this.#rebuild();
  }

  #taken({ batch, answer }) {
    this.#answered(answer);
    if (batch.text !== undefined) bus.emit("project.script", { batch, answer });
  }

  #refused({ batch, error }) {
    this.#dropped(batch.text === undefined ? "project.refused" : "project.script", { batch, error });
  }

  #dropped(event, about) {
    this.#rebuild();
    bus.emit(event, about);
  }

  async #conflict() {
    const outbox = this.#outbox;
    bus.emit("project.conflict", { isNew: true }); // at once, as fetching the state may take a while
    await this.#live.again();
    if (outbox === this.#outbox) bus.emit("project.conflict", { isNew: false });
  }

  /** Whether a state was asked for before an edit, or a render, that was answered meanwhile. @param {ProjectBody} body */
  #isBehind({ rev, job }) {
    return rev < this.#base.rev || (this.rendering && !isRunning(job));
  }

  #adopt(body) {
    this.#base = documentOf(body, this.#base);
    this.#answers = [];
    this.#steps = [];
    const known = new Set(this.notices.map((one) => JSON.stringify(one)));
    this.notices.push(...(body.notices ?? []).filter((one) => !known.has(JSON.stringify(one))));
    this.#rebuild();
    this.#showJob(body.job);
    bus.emit("project.storage", body.storage ?? null);
  }

  #step(step) {
    if (step.type === "line") return this.#soon(step);
    if (step.type === "job") {
      this.#jobSteps += 1;
      return this.#setJob(step);
    }
    if (step.type === "storage") return bus.emit("project.storage", step.message);
    // An event has the state at the time it was sent, so the last one is always right; but the answer to a later edit may have come before it.
    this.#flushSteps();
    this.#answers = this.#answers.filter(({ rev }) => rev > step.rev);
    for (const { rev, changes } of [step, ...this.#answers])
      this.#base = withChanges(this.#base, Math.max(rev, this.#base.rev), changes);
    return this.#rebuild();
  }

  /** The draft voice causes hundreds of events a second; the page applies them once a frame. */
  #soon(step) {
    this.#steps.push(step);
    if (this.#steps.length === 1) requestAnimationFrame(() => this.#flushSteps());
  }

  #flushSteps() {
    if (!this.#steps.length) return;
    this.#base = withSteps(this.#base, this.#steps);
    this.#steps = [];
    this.#rebuild();
  }

  /** After a render no line is queued; if one still seems to be, fetch the current state. */
  #setJob(job) {
    this.#flushSteps();
    this.#showJob(job);
    if (job && !this.rendering && this.lines.some(isPending)) this.#live?.again();
  }

  #showJob(job) {
    this.job = job ?? null;
    this.#jobAt_ms = performance.now();
    bus.emit("project.job");
  }

  #rebuild() {
    const old = this.view;
    this.view = withOps(this.#base, this.#outbox.ops);
    const ids = new Set();
    for (const [lineId, line] of this.view.lines) if (old.lines.get(lineId) !== line) ids.add(lineId);
    const order = !sameOrder(old.order, this.view.order);
    const meta = [
      "name", "cast", "settings", "speakers", "accepted_takes", "starred_takes", "pronunciations", "comments",
      "characters",
      "can_undo", "can_redo",
    ].some((key) => old[key] !== this.view[key]);
    if (order) this.#deletedLines.remember(old, this.view);
    if (!ids.size && !order && !meta) return;
    bus.emit("project.changed", { ids, order, meta });
    if (meta) bus.emit("project.meta");
  }

  /** With another engine, other takes are outdated. */
  #followEngine(name) {
    if (this.#engine !== null && this.#engine !== name) this.look();
    this.#engine = name;
  }
}

/** A render that waits for room on the disk goes on by itself. */
function isRunning(job) {
  return job?.state === "running" || job?.state === "waiting";
}

function sameOrder(a, b) {
  return a === b || (a.length === b.length && a.every((lineId, at) => lineId === b[at]));
}
