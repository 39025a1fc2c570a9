/** Lines as the studio's own script: what is copied fits into any editor, and back in with all it says. */

const PLAIN_NAME = /^[\p{L}\p{N}][\p{L}\p{N}\p{M}'’-]*( [\p{L}\p{N}\p{M}'’-]+){0,4}$/u;
const BARE_WORD = /^[A-Za-z_][A-Za-z0-9_.-]*$/;
const PLAIN_PATH = /^[\p{L}\p{N}_.-]+( [\p{L}\p{N}_.-]+)*$/u;

/** @param {object[]} lines @returns {string} one row each */
export function scriptOf(lines) {
  return lines.map((line) => `${rowOf(line)}\n`).join("");
}

function rowOf({ kind, speaker, text, language, seed, params, duration_s: seconds, path }) {
  if (kind === "silence") return `[pause:${seconds}s]`;
  if (kind === "audio") return `[audio: ${PLAIN_PATH.test(path) ? path : quoted(path)}]`;
  const said = Object.entries(params ?? {}).map(([name, value]) => `${name}:${valueOf(value)}`);
  if (language) said.unshift(`lang:${language}`);
  if (seed !== null && seed !== undefined) said.push(`seed:${seed}`);
  return `${header(speaker, said)} ${text}`.trimEnd();
}

/** Brackets hold any name; the plain form only where nothing in it could be read as text. */
function header(name, said) {
  if (said.length) return `[${[name, ...said].join(" | ")}]`;
  return PLAIN_NAME.test(name) ? `${name}:` : `[${name} |]`;
}

function valueOf(value) {
  if (typeof value !== "string") return String(value);
  return BARE_WORD.test(value) && value !== "true" && value !== "false" ? value : quoted(value);
}

/** JSON in visible ASCII without the marks that scripts are made of. */
function quoted(text) {
  return JSON.stringify(text).replace(/[^\x20-\x7e]|[[\]|]/g, escaped);
}

function escaped(unit) {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}
