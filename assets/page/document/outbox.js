/** Edits to be sent to the studio: in order, one at a time, retried after a lost connection. */
import { Bus } from "../core/bus.js";
import { localStore } from "../core/local_store.js";
import { newId } from "./document.js";

/** @import { Batch, EditAnswer } from "../core/types" */

const QUIET_MS = 250;
const LONGEST_MS = 800;
const RETRY_MS = 1000;
const SLOW_RETRY_MS = 5000;
const TRIES = 3;
/** Statuses that don't concern the edit: not signed in, busy, a proxy without its studio, disk full. */
const PASSING = new Set([401, 408, 425, 429, 502, 503, 504, 507]);

export class Outbox {
  /** @type {Bus<import("../core/types").OutboxEvents>} */
  events = new Bus();
  #batches = [];
  #sending = null;
  #underWay = null;
  #timer = null;
  #send;
  #key;
  #tries = 0;
  #left = false;

  /** @param {string} projectId @param {(batch: Batch, last: boolean) => Promise<EditAnswer>} send */
  constructor(projectId, send) {
    this.#send = send;
    this.state = "saved";
    /** Why the studio takes no edits now: its error, or null. */
    this.trouble = null;
    /** Whether unsent edits survive the page. */
    this.kept = true;
    /** Batches with a conflict, each with its `error` {message, conflicts}. */
    this.aside = [];
    // Each tab stores its edits under its own key; a tab that opens the project takes over those of closed tabs.
    const legacyKey = `tableread.unsent.${projectId}`;
    this.#key = `${legacyKey}.${newId()}`;
    this.#takeOver([...localStore.keys(`${legacyKey}.`), legacyKey]);
    if (!this.#batches.length) return;
    this.state = "saving";
    this.#soon(0);
  }

  /** Edits that the studio hasn't acknowledged, in order. */
  get ops() {
    return this.#batches.flatMap((batch) => batch.ops);
  }

  /** The script that is being sent, if any. @returns {string | undefined} */
  get script() {
    return this.#batches.findLast(({ text }) => text !== undefined)?.text;
  }

  get unsent() {
    return this.#batches.length;
  }

  /** Edits of one group wait for a pause, a whole script's `text` doesn't. @param {Omit<Batch, 'edit_id'>} batch */
  push({ ops, client, base_rev, group = null, text }) {
    const last = this.#batches.at(-1);
    const joins = group && last?.group === group && last.client === client && last !== this.#sending;
    // The batch may have taken effect although its response was lost, so with more edits it needs a new id.
    if (joins) Object.assign(last, { edit_id: newId(), ops: merged(last.ops, ops) });
    else this.#batches.push({ edit_id: newId(), client, base_rev, group, ops, since: Date.now() });
    if (text !== undefined) Object.assign(this.#batches.at(-1), { text, base_rev });
    const waited = Date.now() - this.#batches.at(-1).since;
    this.#soon(group && text === undefined && waited < LONGEST_MS ? QUIET_MS : 0);
    if (this.state === "offline" || this.#left) this.keep();
    this.#setState(this.state === "offline" ? "offline" : "saving");
  }

  /** Send all edits; resolves when none is left, or the studio can't take them. */
  async flush() {
    clearTimeout(this.#timer);
    this.#timer = null;
    while (this.#batches.length && !this.#left && (await this.#sendNext()));
  }

  /** Store unsent edits for the next visit. */
  keep() {
    const all = [...this.#batches, ...this.aside];
    if (all.length) this.kept = localStore.set(this.#key, JSON.stringify(all));
    else localStore.remove(this.#key);
  }

  /** The page is being closed: store unsent edits, and try to send them. */
  leave() {
    this.keep();
    clearTimeout(this.#timer);
    this.#timer = null;
    const [next] = this.#batches;
    if (next && next !== this.#sending) this.#send(next, true).catch(() => {});
  }

  /** Another project is opened: unsent edits stay stored for this one, and no event follows. */
  close() {
    this.#left = true;
    clearTimeout(this.#timer);
    this.keep();
  }

  /** Resolve the conflict of a batch. */
  settle(batch) {
    this.aside = this.aside.filter((one) => one !== batch);
    this.keep();
  }

  #takeOver(keys) {
    const found = keys.flatMap((key) => localStore.json(key, []));
    const known = new Map(found.map((batch) => [batch.edit_id, batch]));
    this.#batches = [...known.values()].filter(({ error }) => !error);
    this.aside = [...known.values()].filter(({ error }) => error);
    keys.forEach((key) => localStore.remove(key));
    this.keep();
  }

  #soon(delay_ms) {
    if (this.#left || (this.state === "offline" && this.#timer !== null)) return;
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
      this.#emit("taken", { batch, answer });
    } catch (error) {
      this.#sending = null;
      if (this.#mayPass(error)) return this.#wait(batch, error);
      this.#refuse(batch, error);
    }
    this.#tries = 0;
    this.#setState(this.#batches.length ? "saving" : "saved");
    return true;
  }

  #mayPass({ status }) {
    if (!status || PASSING.has(status)) return true;
    this.#tries += 1;
    return status >= 500 && this.#tries < TRIES;
  }

  /** Edits are dropped only if they are malformed; the script view keeps its text. */
  #refuse(batch, error) {
    const conflicts = error.body?.conflicts ?? [];
    const stays = batch.text === undefined && (error.status >= 500 || conflicts.length > 0);
    if (stays) {
      this.#absorb(batch);
      this.aside.push(Object.assign(batch, { error: { message: error.message, conflicts } }));
    }
    this.#drop(batch);
    if (stays) this.keep();
    this.#emit(stays ? (conflicts.length ? "conflict" : "failed") : "refused", { batch, error });
  }

  /** Later edits of the same field join its question. */
  #absorb(batch) {
    const later = this.#batches.filter((one) => one !== batch && one.group && one.group === batch.group);
    for (const { ops } of later) batch.ops = merged(batch.ops, ops);
    this.#batches = this.#batches.filter((one) => !later.includes(one));
  }

  #drop(batch) {
    this.#sending = null;
    this.#batches = this.#batches.filter((one) => one !== batch);
    if (localStore.get(this.#key)) this.keep();
  }

  #wait(batch, error) {
    batch.again = true;
    this.keep();
    this.#setState("offline", error.status ? error : null);
    const delay_ms = PASSING.has(error.status) ? SLOW_RETRY_MS : RETRY_MS;
    if (!this.#left) this.#timer = setTimeout(() => this.flush(), delay_ms);
    return false;
  }

  #setState(state, trouble = state === "offline" ? this.trouble : null) {
    if (this.state === state && this.trouble?.message === trouble?.message) return;
    this.state = state;
    this.trouble = trouble;
    this.#emit("state");
  }

  #emit(name, detail = null) {
    if (!this.#left) this.events.emit(name, detail);
  }
}

/** Typing replaces earlier unsent text of the same field. */
function merged(before, ops) {
  const [old, fresh] = [before[0], ops[0]];
  const alike =
    before.length === 1 && ops.length === 1 && old.op === "set" && fresh.op === "set" &&
    String(old.line_ids) === String(fresh.line_ids);
  if (!alike) return [...before, ...ops];
  return [{ ...old, fields: { ...old.fields, ...fresh.fields } }];
}
