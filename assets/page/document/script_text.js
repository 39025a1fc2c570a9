/** Lines as script text and back, and how two versions of a text differ; no document is touched here. */
import { localStore } from "../core/local_store.js";
import { newId } from "./document.js";

/** @import { Line, NewLine } from "../core/types" */

const PLAIN_NAME = /^[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*( [\p{L}\p{N}\p{M}'’-]+){0,4}$/u;
/** Headings, cues and keys of a title page, which stand before a colon and are nobody. */
const NOBODY = /^(act|scene|chapter|episode|part|segment|section|music|sfx|fx|sound|int|ext|title|setting|characters|dramatis|duration|genre|logline|synopsis|ambien|jingle|at rise|grams|atmos?|spot|stinger|geräusch|musik|bruitage|musique|efecto|sonido|m[uú]sica|rumori|шум|музыка|[ée]pisod|folge|se|bgm|効果音|音|人物|登場人物|(director|production|editor|author)?['’]?s? ?notes?$|todo|fixme|location|anmerkung|schauplatz|remarque|примечание|место|備考|場所|地点|\d+ )|\b(music|cut|fade|dissolve)\b/i;
/** What a reader might take for Markdown; behind a backslash a row is literal text. */
const MARKED = /[*_`]|\]\(|~~/;
const BARE_WORD = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const PLAIN_PATH = /^[\p{L}\p{N}_.-]+( [\p{L}\p{N}_.-]+)*$/u;

/** @param {Array<Line | NewLine>} lines @returns {string} a row each, or two where the text needs one of its own */
export function serializeLines(lines) {
  return lines.map((line) => `${rowOf(line)}\n`).join("");
}

const SIGNS = { heading: "##", note: "#", action: "#>" };

/** @param {Partial<Line>} line */
function rowOf({ kind, speaker, text, language, seed, params, duration_s: seconds, path, unspoken }) {
  if (unspoken) return `${SIGNS[unspoken]} ${text}`;
  if (kind === "silence") return `[pause:${seconds}s]`;
  if (kind === "audio") return `[audio: ${PLAIN_PATH.test(path) ? path : quoted(path)}]`;
  const said = Object.entries(params ?? {}).map(([name, value]) => `${name}:${valueOf(value)}`);
  if (language) said.unshift(`lang:${language}`);
  if (seed !== null && seed !== undefined) said.push(`seed:${seed}`);
  if (MARKED.test(text)) return `${header(speaker, said)}\n\\${text}`;
  return `${header(speaker, said)} ${text}`.trimEnd();
}

/** In brackets any name can be written; the plain form only if it can't be mistaken for text. */
function header(name, said) {
  if (said.length) return `[${[name, ...said].join(" | ")}]`;
  return PLAIN_NAME.test(name) && !NOBODY.test(name) ? `${name}:` : `[${name} |]`;
}

function valueOf(value) {
  if (typeof value !== "string") return String(value);
  return BARE_WORD.test(value) && value !== "true" && value !== "false" ? value : quoted(value);
}

/** JSON in visible ASCII, without the characters of the script's syntax. */
function quoted(text) {
  return JSON.stringify(text).replace(/[^\x20-\x7e]|[[\]|]/g, escapedUnit);
}

function escapedUnit(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

const NAMED = /^([^:：.!?,;"“”]{1,60})[:：]\s*(\S.*)?$/;
const BRACKETED = /^\[([^[\]|]+\|[^[\]]*\]|audio:[^\]]+\]$)/;
const PAUSE = /^\[pause:(\d+(?:\.\d+)?)s\]$/i;
const LITERAL = /^\\/;

/** Whether text pasted into a line is a piece of a script, which the studio then reads, and not a paragraph. */
export function looksLikeScript(text) {
  const rows = text.split(/\r?\n/).map((row) => row.trim()).filter(Boolean);
  const isRow = (row) => [BRACKETED, PAUSE, NAMED, LITERAL].some((form) => form.test(row));
  return rows.length > 1 && rows.every(isRow) && !PAUSE.test(rows[0]);
}

const TAB = newId();

/** The script's text that the studio doesn't have yet; it survives the page. */
export class ScriptDraft {
  #key = null;

  /** Another project's. @returns {{text: string, rev: number} | null} its unsent text */
  open(projectId) {
    const drawer = `tableread.draft.${projectId}.`;
    this.#key = `${drawer}${TAB}`;
    const key = localStore.keys(drawer).at(-1);
    const left = key ? localStore.json(key, null) : null;
    if (key && key !== this.#key) localStore.remove(key);
    return left;
  }

  /** @param {string} text @param {number} rev of the studio that it was written on */
  keep(text, rev) {
    localStore.set(this.#key, JSON.stringify({ text, rev }));
  }

  forget() {
    localStore.remove(this.#key);
  }
}

/** Maps an offset in a text to the changed text. @returns {(at: number) => number} */
export function offsetShift(before, after) {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return (at) => {
    if (at <= head) return at;
    return at >= before.length - tail ? at + after.length - before.length : Math.min(at, after.length - tail);
  };
}

/** The lines in which two texts differ, from the first to the last. @returns {[string, string]} */
export function differingLines(one, other) {
  const [mine, theirs] = [one.split("\n"), other.split("\n")];
  const most = Math.min(mine.length, theirs.length);
  let head = 0;
  while (head < most && mine[head] === theirs[head]) head += 1;
  let tail = 0;
  while (tail < most - head && mine.at(-1 - tail) === theirs.at(-1 - tail)) tail += 1;
  const part = (rows) => rows.slice(head, rows.length - tail).join("\n");
  return [part(mine), part(theirs)];
}
