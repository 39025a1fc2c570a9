/** Edit conflicts as data: the questions about refused edits, and the edits that remain after the answers. */
import { t } from "../core/texts.js";
import { newId } from "./document.js";

const FIELDS = {
  text: t`Text`, speaker: t`Speaker`, language: t`Language`, seed: t`Seed`, params: t`Voice settings`,
  duration_s: t`Pause length`, path: t`Recording`, locked: t`Lock`, name: t`Project name`,
};
const DONE = { delete: t`Deleted`, join: t`Joined`, split: t`Split`, choose: t`Another take`, move: t`Moved` };
const COPIED = ["kind", "speaker", "text", "language", "seed", "params", "duration_s", "path"];

/**
 * @typedef {{key: string, op: number, lineId: string, field: string, gone: boolean, title: string,
 *   mine: string, theirs: string, keep: string | null}} Question `keep` says what keeping mine does;
 *   null where that can't be done
 */

/** The questions about a refused batch. @returns {Question[]} */
export function conflictQuestions({ ops, error }, project) {
  const asked = new Map();
  for (const conflict of error.conflicts) {
    const question = asQuestion(ops[conflict.op], conflict, project);
    if (!asked.has(question.key)) asked.set(question.key, question);
  }
  return [...asked.values()];
}

/**
 * The edits of a batch after the answers; edits without a conflict are unchanged.
 * @param {Map<string, boolean>} answers by key of the question: whether mine is kept
 */
export function resolvedOps(batch, answers, project) {
  const asked = conflictQuestions(batch, project);
  return batch.ops.flatMap((op, at) => {
    const own = asked.filter((question) => question.op === at);
    if (!own.length) return [op];
    if (op.op === "set") return remadeSet(op, own, answers, project);
    if (op.op === "delete") return remadeDelete(op, own, answers);
    return own.every(({ key }) => answers.get(key)) ? repeated(op, project) : [];
  });
}

function asQuestion(op, { op: at, line_id: lineId, field, theirs }, project) {
  const about = { op: at, lineId, field };
  if (op.op === "set") return { ...about, ...aboutSet(op, about, theirs, project) };
  const perLine = op.op === "delete";
  const line = project.line(lineId);
  return {
    ...about,
    key: perLine ? `${at}:${lineId}` : String(at),
    gone: !line,
    title: op.op === "rename" ? FIELDS.name : t`Line`,
    mine: op.op === "rename" ? op.name : op.op === "insert" ? words(op.lines) : DONE[op.op],
    theirs: op.op === "rename" ? shown(theirs) : line ? words([line]) : t`The line was deleted`,
    keep: repeated(op, project).length ? t`Keep mine` : null,
  };
}

function aboutSet({ fields }, { op, lineId, field }, theirs, project) {
  if (project.line(lineId)) {
    const title = FIELDS[field] ?? t`Line`;
    return { key: `${op}:${lineId}:${field}`, gone: false, title, mine: shown(fields[field]), theirs: shown(theirs), keep: t`Keep mine` };
  }
  const wanted = Object.entries(fields).map(([name, value]) => (name === "text" ? value : `${FIELDS[name] ?? name}: ${shown(value)}`));
  const keep = reinsertion(lineId, fields, project) ? t`Keep mine as a new line` : null;
  return { key: `${op}:${lineId}`, gone: true, title: t`Line`, mine: wanted.join("; "), theirs: t`The line was deleted`, keep };
}

function remadeSet(op, asked, answers, project) {
  const disputed = new Set(asked.map(({ lineId }) => lineId));
  const calm = op.line_ids.filter((lineId) => !disputed.has(lineId));
  const rest = calm.length ? [{ ...op, line_ids: calm }] : [];
  return [...rest, ...[...disputed].flatMap((lineId) => {
    const own = asked.filter((question) => question.lineId === lineId);
    if (own[0].gone) return answers.get(own[0].key) ? [reinsertion(lineId, op.fields, project)] : [];
    const dropped = new Set(own.filter(({ key }) => !answers.get(key)).map(({ field }) => field));
    const fields = Object.fromEntries(Object.entries(op.fields).filter(([name]) => !dropped.has(name)));
    return Object.keys(fields).length ? [{ ...op, line_ids: [lineId], fields }] : [];
  })];
}

function remadeDelete(op, asked, answers) {
  const spared = new Set(asked.filter(({ key }) => !answers.get(key)).map(({ lineId }) => lineId));
  const lineIds = op.line_ids.filter((lineId) => !spared.has(lineId));
  return lineIds.length ? [{ ...op, line_ids: lineIds }] : [];
}

/** The same edit again, for those of its lines that still exist. */
function repeated(op, project) {
  const there = (lineIds) => lineIds.filter((lineId) => project.line(lineId));
  if (op.op === "insert") return [{ ...op, after: placeOf(op.after, project) }];
  if (op.op === "rename") return [op];
  const lineIds = there(op.line_ids ?? [op.line_id]);
  if (op.op === "join" && lineIds.length < 2) return [];
  if (!lineIds.length) return [];
  if (op.op === "split") return [{ ...op, at: Math.min(op.at, project.line(op.line_id).text.length) }];
  if (op.op === "move") return [{ ...op, line_ids: lineIds, after: placeOf(op.after, project) }];
  return [op.line_ids ? { ...op, line_ids: lineIds } : op];
}

/** Insert a deleted line again in its place, as this page had it. */
function reinsertion(lineId, fields, project) {
  const deleted = project.deletedLine(lineId);
  const speaker = project.view.speakers[0]?.name ?? "Speaker 1";
  const known = deleted?.line ?? { kind: "speech", speaker };
  if (!deleted && !fields.text) return null;
  const copy = Object.fromEntries(COPIED.filter((name) => name in known).map((name) => [name, known[name]]));
  const after = deleted ? deleted.after : (project.view.order.at(-1) ?? null);
  return { op: "insert", after: placeOf(after, project), lines: [{ ...copy, ...fields, line_id: newId() }] };
}

/** The line itself, or the one before it if it was deleted. */
function placeOf(lineId, project) {
  let at = lineId;
  while (at !== null && !project.line(at)) at = project.deletedLine(at)?.after ?? null;
  return at;
}

function words(lines) {
  return lines.map(({ text, duration_s: seconds }) => text || (seconds ? t`Pause of ${seconds} s` : "—")).join(" / ");
}

function shown(value) {
  if (value === null || value === undefined || value === "") return "—";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
