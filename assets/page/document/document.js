/**
 * The dialog in the browser, as immutable states: each change returns a new one that shares the rest, so
 * that unacknowledged edits can be applied again to whatever the studio sends.
 */
import { translateServer } from "../core/texts.js";
import { GAP, START, withGap } from "../playback/gaps.js";

/** @import { DialogDocument, ProjectBody, ProjectMeta, StepOfLine, Take } from "../core/types" */

export const RATE_HZ = 24_000;
export const MAX_PAUSE_S = 300;

/** @type {DialogDocument} */
export const EMPTY_DOCUMENT = {
  rev: 0, name: "", lines: new Map(), order: [], cast: {}, settings: {}, speakers: [],
  accepted_takes: [], starred_takes: [], pronunciations: [], comments: [], characters: {}, can_undo: false,
  can_redo: false,
};

const META = [
  "name", "order", "cast", "settings", "speakers", "accepted_takes", "starred_takes", "pronunciations", "comments",
  "characters",
  "can_undo", "can_redo",
];
const SOUNDING = ["speaker", "text", "language", "params", "path"];

/**
 * @param {ProjectBody} body of a project @param {DialogDocument} [before] what was known of it: what stayed keeps its identity, so
 *   that nobody takes it for changed
 * @returns {DialogDocument}
 */
export function documentOf(body, before = EMPTY_DOCUMENT) {
  const { rev } = body;
  const lines = new Map(body.lines.map((line) => [line.line_id, kept(line, before.lines.get(line.line_id))]));
  const order = kept([...lines.keys()], before.order);
  const meta = /** @type {ProjectMeta} */ (Object.fromEntries(META.map((key) => [key, kept(body[key], before[key])])));
  return { ...meta, order, rev, lines };
}

function kept(now, before) {
  return JSON.stringify(now) === JSON.stringify(before) ? before : now;
}

/** Apply an edit event of the studio. @param {DialogDocument} state @returns {DialogDocument} */
export function withChanges(state, rev, changes) {
  const next = { ...state, rev };
  for (const key of META) if (changes[key] !== undefined && changes[key] !== null) next[key] = changes[key];
  if (changes.lines) next.lines = withLines(state.lines, changes.lines);
  // The order is the current one, and may name lines that come with the next event.
  if (changes.lines || changes.order) next.order = next.order.filter((lineId) => next.lines.has(lineId));
  return next;
}

function withLines(lines, changed) {
  const next = new Map(lines);
  for (const [lineId, line] of Object.entries(changed)) {
    if (line === null) next.delete(lineId);
    else next.set(lineId, { ...next.get(lineId), ...line });
  }
  return next;
}

/** Steps of a render. @param {DialogDocument} state @param {StepOfLine[]} steps @returns {DialogDocument} */
export function withSteps(state, steps) {
  const lines = new Map(state.lines);
  for (const { line_id: lineId, type: _type, seq: _seq, ...fields } of steps) {
    const line = lines.get(lineId);
    if (line) lines.set(lineId, { ...line, message: null, ...fields });
  }
  return { ...state, lines };
}

/** Apply edits of this page that the studio hasn't acknowledged; applying them twice has no further effect. @param {DialogDocument} state @returns {DialogDocument} */
export function withOps(state, ops) {
  if (!ops.length) return state;
  const next = { ...state, lines: new Map(state.lines), order: [...state.order] };
  for (const op of ops) OPS[op.op]?.(next, op);
  return next;
}

/** A character without settings. @type {import("../core/types").Character} */
export const PLAIN_CHARACTER = { voices: {}, params: {}, level_db: 0, gap_s: null, pan: 0 };

/** What a character's settings are kept by. @param {DialogDocument} view @param {string | null} name */
export function characterKey({ speakers }, name) {
  let keys = keysOf.get(speakers);
  if (!keys) {
    keys = new Map(speakers.map((one) => [foldName(one.name), one.key]));
    keysOf.set(speakers, keys);
  }
  const folded = foldName(name ?? "");
  return keys.get(folded) ?? folded;
}

/** @type {WeakMap<import("../core/types").DialogDocument["speakers"], Map<string, string>>} their keys by folded name */
const keysOf = new WeakMap();

function foldName(name) {
  return name.trim().toLowerCase();
}

/** The settings of a character. @param {DialogDocument} view @param {string | null} name */
export function characterOf(view, name) {
  return view.characters[characterKey(view, name)] ?? PLAIN_CHARACTER;
}

const OPS = {
  insert(state, { after, lines }) {
    const fresh = lines.filter(({ line_id: lineId }) => !state.lines.has(lineId));
    for (const line of fresh) state.lines.set(line.line_id, blank(line));
    putAfter(state, after, fresh.map(({ line_id: lineId }) => lineId));
  },
  delete(state, { line_ids: lineIds }) {
    const gone = new Set(lineIds);
    if (state.comments.some((one) => gone.has(one.line_id))) state.comments = state.comments.filter((one) => !gone.has(one.line_id));
    for (const lineId of gone) state.lines.delete(lineId);
    state.order = state.order.filter((lineId) => !gone.has(lineId));
  },
  move(state, { line_ids: lineIds, after }) {
    const moved = lineIds.filter((lineId) => state.lines.has(lineId));
    const gone = new Set(moved);
    state.order = state.order.filter((lineId) => !gone.has(lineId));
    putAfter(state, after, moved);
  },
  set(state, { line_ids: lineIds, fields }) {
    for (const lineId of lineIds) change(state, lineId, fields);
  },
  split(state, { line_id: lineId, at, new_line_id: newId }) {
    const line = state.lines.get(lineId);
    if (!line || state.lines.has(newId)) return;
    change(state, lineId, { text: line.text.slice(0, at).trimEnd() });
    const rest = { text: line.text.slice(at).trimStart(), params: withGap(line.params, null) };
    state.lines.set(newId, blank({ ...line, line_id: newId, ...rest }));
    putAfter(state, lineId, [newId]);
  },
  join(state, { line_ids: lineIds }) {
    const parts = lineIds.map((lineId) => state.lines.get(lineId));
    if (parts.some((line) => !line)) return;
    const text = parts.map((line) => line.text).filter(Boolean).join(" ");
    change(state, lineIds[0], { text });
    state.comments = state.comments.map((one) => (lineIds.includes(one.line_id) ? { ...one, line_id: lineIds[0] } : one));
    OPS.delete(state, { line_ids: lineIds.slice(1) });
  },
  cast(state, { speaker, voice }) {
    state.cast = { ...state.cast, [speaker]: voice };
  },
  character(state, { speaker, fields }) {
    const key = characterKey(state, speaker);
    const next = { ...(state.characters[key] ?? PLAIN_CHARACTER) };
    for (const [name, value] of Object.entries(fields)) next[name] = value ?? PLAIN_CHARACTER[name];
    state.characters = { ...state.characters, [key]: next };
  },
  rename_speaker(state, { from, to }) {
    for (const [lineId, line] of state.lines) {
      if (line.speaker === from) change(state, lineId, { speaker: to });
    }
  },
  rename(state, { name }) {
    state.name = name;
  },
  accept_take(state, { take_id: takeId, accepted }) {
    const others = state.accepted_takes.filter((one) => one !== takeId);
    state.accepted_takes = accepted ? [...others, takeId] : others;
  },
  star_take(state, { take_id: takeId, starred }) {
    const others = state.starred_takes.filter((one) => one !== takeId);
    state.starred_takes = starred ? [...others, takeId] : others;
  },
  settings(state, { fields }) {
    state.settings = { ...state.settings, ...fields };
  },
  comment(state, { comment_id: commentId, line_id: lineId, author, text }) {
    if (state.comments.some((one) => one.comment_id === commentId)) return;
    const comment = { comment_id: commentId, line_id: lineId, author, text, at_s: Date.now() / 1000, resolved: false };
    state.comments = [...state.comments, comment];
  },
  change_comment(state, { comment_id: commentId, op: _op, ...fields }) {
    state.comments = state.comments.map((one) => (one.comment_id === commentId ? { ...one, ...fields } : one));
  },
  delete_comment(state, { comment_id: commentId }) {
    state.comments = state.comments.filter((one) => one.comment_id !== commentId);
  },
  pronounce(state, { put = [], remove = [] }) {
    const gone = new Set([...remove, ...put.map(({ written }) => written)]);
    state.pronunciations = [...state.pronunciations.filter(({ written }) => !gone.has(written)), ...put];
  },
};

/** A new line, before the studio has acknowledged it. */
function blank(line) {
  const own = { speaker: null, text: "", language: null, seed: null, params: {}, duration_s: null, unspoken: null };
  const { line_id, kind = "speech" } = line;
  const made = { ...own, path: null, ...line, line_id, kind, locked: false, chosen: null, take: null };
  const samples = kind === "silence" ? Math.round(made.duration_s * RATE_HZ) : null;
  return { ...made, n_takes: 0, message: null, samples, state: samples === null ? "none" : "ready" };
}

function change(state, lineId, fields) {
  const line = state.lines.get(lineId);
  if (!line) return;
  const { [UNSURE]: _, ...sure } = line.params ?? {};
  const next = { ...line, ...("speaker" in fields && { params: sure }), ...fields };
  if (line.kind === "silence") next.samples = Math.round(next.duration_s * RATE_HZ);
  else if (SOUNDING.some((name) => name in fields && changesSound(name, fields[name], line[name]))) outdate(next);
  state.lines.set(lineId, next);
}

/** The parameter of a line of which nothing says who speaks. */
const UNSURE = "unsure";
const SILENT = new Set([GAP, START, UNSURE, "about", "voice", "id", "file", "max_duration", "dual"]);

/** Whether another value of a field changes how the line sounds; its gap and its names elsewhere don't. */
function changesSound(name, now, before) {
  if (name !== "params") return now !== before;
  const heard = (params) => JSON.stringify(params, (key, value) => (SILENT.has(key) ? undefined : value));
  return heard(now) !== heard(before);
}

/** A queued line stays queued: the studio renders its current text. */
function outdate(line) {
  const pending = line.state === "queued" || line.state === "generating";
  line.state = pending ? "queued" : line.take ? "stale" : "none";
  line.making = null;
  line.message = null;
  line.spoken = null;
}

function putAfter(state, after, lineIds) {
  const place = after === null ? 0 : state.order.indexOf(after) + 1;
  const at = after !== null && place === 0 ? state.order.length : place;
  state.order.splice(at, 0, ...lineIds);
}

/** @returns {string} twelve hex digits, as lines and edits are named */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(6));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** Whether nothing says who speaks it. */
export function isUnsure({ params }) {
  return params?.[UNSURE] === true;
}

/** Whether a render would include it. */
export function isMissing({ state, locked, take, kind }) {
  if (kind === "silence" || (locked && take) || take?.source) return false;
  return state === "none" || state === "stale" || state === "failed";
}

/** Whether it is being rendered. */
export function isPending({ state }) {
  return state === "queued" || state === "generating";
}

/** The quality issues of a line, if its take is current. @returns {string[]} sentences */
export function lineIssues(line, accepted) {
  return hasOpenIssues(line, accepted) ? takeIssues(line.take) : [];
}

/** The issues of a line that have a place in its text. @returns {{kind: string, start: number, end: number}[]} */
export function lineWordMarks(line, accepted) {
  if (!hasOpenIssues(line, accepted)) return [];
  return (line.take.doubts ?? []).filter(({ start }) => typeof start === "number");
}

function hasOpenIssues(line, accepted) {
  return Boolean(line?.take) && line.state === "ready" && !accepted.includes(line.take.take_id);
}

/** @param {Take} take @returns {string[]} sentences */
export function takeIssues({ doubts }) {
  return (doubts ?? []).map(({ message }) => translateServer(message));
}
