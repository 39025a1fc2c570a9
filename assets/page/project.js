/** The open project: what the studio says of it, and this page's edits laid on top. */
import { EMPTY, fromBody, newId, withChanges, withOps, withSteps } from "./dialog.js";
import { Live } from "./live.js";
import { Outbox } from "./outbox.js";
import * as api from "./project_api.js";

const CLIENT = newId();

/**
 * Events: "change" with `detail` {ids: Set of lines, order: boolean, meta: boolean}, "job" when a
 * render began or ended, "saved" when its `saving` changed, "conflict" with `detail` a list of
 * {line_id, field, mine, theirs}, "refused" with `detail` an error, "storage" with `detail` why
 * nothing can be kept at the moment, or null, "gone".
 */
export class Project extends EventTarget {
  #base = EMPTY;
  #steps = [];
  #jobSteps = 0;
  #live = null;
  #outbox = null;

  constructor() {
    super();
    this.id = null;
    this.view = EMPTY;
    this.job = null;
    this.notices = [];
    this.drafts = async () => {};
    this.listened = () => false;
    addEventListener("pagehide", () => this.#outbox?.leave());
  }

  /** @returns {"saved" | "saving" | "offline"} */
  get saving() {
    return this.#outbox?.state ?? "saved";
  }

  get rendering() {
    return this.job?.state === "running";
  }

  /** Lines in order. @returns {Array<object>} */
  get lines() {
    return this.view.order.map((lineId) => this.view.lines.get(lineId)).filter(Boolean);
  }

  line(lineId) {
    return this.view.lines.get(lineId);
  }

  /** Show another project. @param {object} body */
  async open(body) {
    await this.leave();
    this.id = body.project_id;
    this.#outbox = new Outbox(this.id, (batch, last) => this.#send(batch, last));
    this.#outbox.addEventListener("state", () => this.#tell("saved"));
    this.#outbox.addEventListener("taken", ({ detail }) => this.#answered(detail));
    this.#outbox.addEventListener("refused", ({ detail }) => this.#dropped("refused", detail));
    this.#outbox.addEventListener("conflict", ({ detail }) => this.#conflict(detail));
    this.#adopt(body);
    this.#live = new Live(this.id, body.seq, () => this.listened());
    this.#live.addEventListener("event", ({ detail }) => this.#step(detail));
    this.#live.addEventListener("body", ({ detail }) => this.#adopt(detail));
    this.#live.addEventListener("gone", () => this.#tell("gone"));
  }

  /** Send what is unsent and listen no more. */
  async leave() {
    await this.flush();
    this.#outbox?.keep();
    this.#live?.leave();
    this.#steps = [];
  }

  /** Change the dialog here and now; the studio follows. @param {Array<object>} ops */
  edit(ops, { group = null } = {}) {
    this.#outbox.push({ ops, client: CLIENT, base_rev: this.#base.rev, group });
    this.#rebuild();
  }

  /** Resolve when the studio has all edits, or can't be reached; `drafts` puts what is half typed. */
  async flush() {
    await this.drafts();
    await this.#outbox?.flush();
  }

  /** @param {"undo" | "redo"} way */
  async travel(way) {
    await this.flush();
    const body = { base_rev: this.#base.rev, client: CLIENT };
    this.#answered(await api[way](this.id, body));
  }

  /** Lay a whole script onto the lines. @returns {Promise<Array<object>>} notices */
  async putScript(text) {
    await this.#outbox.flush();
    const body = { base_rev: this.#base.rev, client: CLIENT, text };
    const answer = await api.putScript(this.id, body);
    this.#answered(answer);
    return answer.notices ?? [];
  }

  /** Make lines, or all that are missing or outdated. @param {Array<string> | null} lineIds */
  async render(lineIds, { again = false, listenFrom = null } = {}) {
    await this.flush();
    this.#expect(lineIds, again);
    const body = { line_ids: lineIds, again, listen_from: listenFrom };
    const told = this.#jobSteps;
    try {
      const job = await api.render(this.id, body);
      // A quick voice is done before the answer is here; what the stream told is newer then.
      if (told === this.#jobSteps) this.#setJob(job);
    } catch (error) {
      await this.#live.again();
      throw error;
    }
  }

  /** Ask how it all stands: a voice or the engine changed, and with it what is outdated. */
  look() {
    return this.#live?.again();
  }

  async cancel() {
    await api.cancel(this.id);
  }

  focus(lineId) {
    return api.focus(this.id, lineId);
  }

  /** What a render will make waits from now on, before the studio says so. */
  #expect(lineIds, again) {
    const named = lineIds?.map((lineId) => this.view.lines.get(lineId)).filter(Boolean);
    const steps = (named ?? this.lines)
      .filter((line) => line.kind !== "silence" && (again || isMissing(line)))
      .map((line) => ({ line_id: line.line_id, state: "queued" }));
    this.#base = withSteps(this.#base, steps);
    this.#rebuild();
  }

  #send(batch, last) {
    const { edit_id, client, base_rev, group, ops } = batch;
    return api.edit(this.id, { edit_id, client, base_rev, group, ops }, last);
  }

  #answered({ rev, changes }) {
    if (changes && rev > this.#base.rev) this.#base = withChanges(this.#base, rev, changes);
    this.#rebuild();
  }

  #dropped(kind, error) {
    this.#rebuild();
    this.#emit(kind, error);
  }

  async #conflict(error) {
    await this.#live.again();
    const conflicts = error.body.conflicts ?? error.body.error?.conflicts ?? [];
    this.#emit("conflict", conflicts);
  }

  #adopt(body) {
    this.#base = fromBody(body);
    this.#steps = [];
    this.notices = body.notices ?? [];
    this.#rebuild();
    this.#showJob(body.job);
  }

  #step(step) {
    if (step.type === "line") return this.#soon(step);
    if (step.type === "job") {
      this.#jobSteps += 1;
      return this.#setJob(step);
    }
    if (step.type === "storage") return this.#emit("storage", step.message);
    // The stream tells things as they are when it tells them: the last word is always right.
    this.#flushSteps();
    this.#base = withChanges(this.#base, Math.max(step.rev, this.#base.rev), step.changes);
    return this.#rebuild();
  }

  /** A draft voice makes hundreds of steps a second; the page takes them once a frame. */
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

  /** A render that has ended leaves no line waiting; where one seems to, ask what is so. */
  #setJob(job) {
    this.#flushSteps();
    this.#showJob(job);
    if (job && !this.rendering && this.lines.some(isPending)) this.#live?.again();
  }

  #showJob(job) {
    this.job = job ?? null;
    this.#tell("job");
  }

  #rebuild() {
    const old = this.view;
    this.view = withOps(this.#base, this.#outbox.ops);
    const ids = new Set();
    for (const [lineId, line] of this.view.lines) if (old.lines.get(lineId) !== line) ids.add(lineId);
    const order = !sameOrder(old.order, this.view.order);
    const meta = ["name", "cast", "settings", "speakers", "can_undo", "can_redo"].some(
      (key) => old[key] !== this.view[key],
    );
    if (!ids.size && !order && !meta) return;
    this.#emit("change", { ids, order, meta });
  }

  #tell(name) {
    this.dispatchEvent(new Event(name));
  }

  #emit(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}

/** Whether a render would make it. */
export function isMissing({ state, locked, take, kind }) {
  if (kind === "silence" || (locked && take)) return false;
  return state === "none" || state === "stale" || state === "failed";
}

/** Whether it is being made. */
export function isPending({ state }) {
  return state === "queued" || state === "generating";
}

function sameOrder(a, b) {
  return a === b || (a.length === b.length && a.every((lineId, at) => lineId === b[at]));
}
