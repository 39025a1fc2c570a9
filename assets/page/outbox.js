/** Edits on their way to the studio: sent in order, one at a time, again after a lost connection. */
import { newId } from "./dialog.js";

const QUIET_MS = 250;
const LONGEST_MS = 800;
const RETRY_MS = 1000;

/**
 * Events: "state" when `state` (saved, saving, offline) changed, "taken" with `detail` the
 * answer, "conflict" and "refused" with `detail` the error; the edit is dropped then.
 */
export class Outbox extends EventTarget {
  #batches = [];
  #sending = null;
  #underWay = null;
  #timer = null;
  #send;
  #key;

  /** @param {string} projectId @param {(batch: object, last: boolean) => Promise<object>} send */
  constructor(projectId, send) {
    super();
    this.#send = send;
    this.#key = `tableread.unsent.${projectId}`;
    this.state = "saved";
    this.#batches = JSON.parse(localStorage.getItem(this.#key) ?? "[]");
    if (this.#batches.length) this.#soon(0);
  }

  /** Edits the studio hasn't answered, in order. */
  get ops() {
    return this.#batches.flatMap((batch) => batch.ops);
  }

  /** @param {object} about {ops, client, base_rev, group}; edits of one group wait for a pause */
  push({ ops, client, base_rev, group = null }) {
    const last = this.#batches.at(-1);
    if (group && last?.group === group && last !== this.#sending) last.ops = merged(last.ops, ops);
    else this.#batches.push({ edit_id: newId(), client, base_rev, group, ops, since: Date.now() });
    const waited = Date.now() - this.#batches.at(-1).since;
    this.#soon(group && waited < LONGEST_MS ? QUIET_MS : 0);
    if (this.state === "offline") this.keep();
    this.#tell(this.state === "offline" ? "offline" : "saving");
  }

  /** Send what waits; resolves when nothing does any more, or the studio can't be reached. */
  async flush() {
    clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#batches.length && (await this.#sendNext()));
  }

  /** Keep what is unsent for the next visit. */
  keep() {
    if (this.#batches.length) localStorage.setItem(this.#key, JSON.stringify(this.#batches));
    else localStorage.removeItem(this.#key);
  }

  /** The page goes away: keep what is unsent, and try to send it meanwhile. */
  leave() {
    this.keep();
    clearTimeout(this.#timer);
    const [next] = this.#batches;
    if (next && next !== this.#sending) this.#send(next, true).catch(() => {});
  }

  #soon(delay_ms) {
    if (this.state === "offline" && this.#timer !== null) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.flush(), delay_ms);
  }

  /** @returns {Promise<boolean>} whether it went on */
  #sendNext() {
    this.#underWay ??= this.#transfer().finally(() => (this.#underWay = null));
    return this.#underWay;
  }

  async #transfer() {
    const batch = (this.#sending = this.#batches[0]);
    try {
      const answer = await this.#send(batch, false);
      this.#drop(batch);
      this.dispatchEvent(new CustomEvent("taken", { detail: answer }));
    } catch (error) {
      this.#sending = null;
      if (!error.status || error.status === 429 || error.status >= 500) return this.#wait();
      this.#drop(batch);
      const kind = error.kind === "EditConflict" ? "conflict" : "refused";
      this.dispatchEvent(new CustomEvent(kind, { detail: error }));
    }
    this.#tell(this.#batches.length ? "saving" : "saved");
    return true;
  }

  #drop(batch) {
    this.#sending = null;
    this.#batches = this.#batches.filter((one) => one !== batch);
    if (localStorage.getItem(this.#key)) this.keep();
  }

  #wait() {
    this.#tell("offline");
    this.keep();
    this.#timer = setTimeout(() => this.flush(), RETRY_MS);
    return false;
  }

  #tell(state) {
    if (this.state === state) return;
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }
}

/** Typing replaces what was typed before it in the same field. */
function merged(before, ops) {
  const [old, fresh] = [before[0], ops[0]];
  const alike =
    before.length === 1 && ops.length === 1 && old.op === "set" && fresh.op === "set" &&
    String(old.line_ids) === String(fresh.line_ids);
  if (!alike) return [...before, ...ops];
  return [{ ...old, fields: { ...old.fields, ...fresh.fields } }];
}
