/** The voices that a character could have: which are shown, which it has, and the edit that chooses one. */
import { fold, languageName } from "../core/format.js";

/** @import { CastSpeaker, DialogDocument, Line, Op, VoiceCandidate } from "../core/types" */

const SHORTEST_CHARS = 20;
const LONGEST_CHARS = 160;
const MOST_CHARS = 500;
const STOCK = "The lamp is still burning, and nobody is home.";

/**
 * The line by which voices are compared: the character's first of useful length, else its longest.
 * @param {Line[]} lines @param {string} name @returns {{text: string, language: string | null}}
 */
export function lineToHear(lines, name) {
  const own = lines.filter(({ kind, speaker, text }) => kind === "speech" && fold(speaker ?? "") === fold(name) && /\p{L}/u.test(text));
  const useful = own.find(({ text }) => text.length >= SHORTEST_CHARS && text.length <= LONGEST_CHARS);
  const line = useful ?? own.toSorted((one, other) => other.text.length - one.text.length)[0];
  if (!line) return { text: STOCK, language: null };
  return { text: line.text.length > MOST_CHARS ? firstSentences(line.text) : line.text, language: line.language };
}

/** @param {string} text */
function firstSentences(text) {
  const cut = text.slice(0, LONGEST_CHARS);
  return /^.{20,}[.!?…。！？]/su.exec(cut)?.[0] ?? cut;
}

/** The key of the voice that a character has. @param {DialogDocument} view @param {CastSpeaker} speaker @param {string} engine of the project @param {VoiceCandidate[]} voices */
export function currentKey(view, { name, key }, engine, voices) {
  const assigned = Object.entries(view.cast).find(([other]) => fold(other) === fold(name))?.[1];
  if (assigned) return `library/${assigned}`;
  const own = view.characters[key]?.voices[engine];
  if (own) return `engine/${engine}/${own}`;
  const namesake = voices.find((one) => one.key.startsWith("library/") && fold(one.name) === fold(name));
  return namesake?.key ?? "automatic";
}

/** The names of others with each voice, by its key. @param {DialogDocument} view @param {CastSpeaker[]} speakers @param {CastSpeaker} but @param {string} engine @param {VoiceCandidate[]} voices */
export function namesByVoice(view, speakers, but, engine, voices) {
  return group(speakers.filter(({ key }) => key !== but.key), (one) => currentKey(view, one, engine, voices), ({ name }) => name);
}

/** @template One @param {Iterable<One>} all @param {(one: One) => string} keyOf @param {(one: One) => string} valueOf @returns {Map<string, string[]>} */
function group(all, keyOf, valueOf) {
  /** @type {Map<string, string[]>} */
  const found = new Map();
  for (const one of all) found.set(keyOf(one), [...(found.get(keyOf(one)) ?? []), valueOf(one)]);
  return found;
}

/**
 * The edit that gives a character a voice: one step of undo, also where the scene goes to another engine with it.
 * @param {DialogDocument} view @param {CastSpeaker} speaker @param {string} voice its key @param {string} engine of the project
 * @returns {Op[]}
 */
export function castOps(view, { name, key }, voice, engine) {
  const [kind, ...rest] = voice.split("/");
  const had = view.characters[key]?.voices ?? {};
  /** @type {Op[]} */
  const ops = [{ op: "cast", speaker: name, voice: kind === "library" ? rest[0] : null }];
  if (kind === "engine") {
    const [other, ...id] = rest;
    ops.push({ op: "character", speaker: name, fields: { voices: { ...had, [other]: id.join("/") } } });
    if (other !== engine) ops.push({ op: "settings", fields: { backend: other } });
  } else if (Object.keys(had).length) {
    const { [engine]: _, ...others } = had;
    ops.push({ op: "character", speaker: name, fields: { voices: kind === "library" ? {} : others } });
  }
  return ops;
}

/** @typedef {{language: string, gender: string, age: string, sound: string, engine: string, tag: string, search: string}} VoiceFilter */

/**
 * Whether a voice passes.
 * @param {VoiceCandidate} voice @param {VoiceFilter} filter @param {Map<string, string[]>} spoken languages by engine
 * @param {string} about what its row says of it
 */
export function isShown(voice, filter, spoken, about) {
  const { language, gender, age, sound, engine, tag, search } = filter;
  return (
    (!gender || voice.gender === gender) &&
    (!age || voice.age === age) &&
    (!sound || voice.sound.includes(sound)) &&
    (!engine || (voice.engine ?? "") === (engine === "own" ? "" : engine)) &&
    (!tag || voice.tags.some((one) => fold(one) === tag)) &&
    (!language || speaks(voice, language, spoken)) &&
    isFound(fold(`${searched(voice)} ${about}`), fold(search))
  );
}

/** @param {string} text @param {string} wanted every word of it has to begin one there: "man" isn't in "woman" */
function isFound(text, wanted) {
  const words = ` ${text.replace(/[^\p{L}\p{N}_]+/gu, " ")}`;
  return wanted.split(/[^\p{L}\p{N}_]+/u).every((word) => words.includes(` ${word}`));
}

function searched({ key, name, kind, gender, age, sound, tags, languages, engine }) {
  const id = key.slice(key.lastIndexOf("/") + 1);
  return [name, id, kind, gender, age, ...sound, engine ?? "", ...tags, ...languages, ...languages.map((code) => languageName(code))].join(" ");
}

/** A voice that names no language speaks all of its engine's. */
function speaks({ languages, engine }, language, spoken) {
  const codes = languages.length ? languages : (spoken.get(engine ?? "") ?? []);
  return !codes.length || codes.some((code) => code === language || baseOf(code) === language);
}

/** The languages to choose from, and where there are several of one those of its regions. @param {string[]} codes */
export function listLanguages(codes) {
  return [...group(new Set(codes), baseOf, (code) => code)].flatMap(([base, found]) => (found.length > 1 ? [base, ...found.filter((code) => code !== base)] : found));
}

/** @param {string} code @returns {string} "pt" of "pt-BR" */
export function baseOf(code) {
  return code.split(/[-_]/)[0].toLowerCase();
}

/**
 * The first voice to hear for a character that nobody has cast: one that no other of the cast has. Neighbours in an
 * engine's list sound alike, so characters begin at places that are far from each other.
 * @param {VoiceCandidate[]} voices that can be heard now @param {Set<string>} taken keys @param {number} share of the cast before it, 0 to 1
 */
export function firstToHear(voices, taken, share) {
  const free = voices.filter(({ key }) => key !== "automatic" && !taken.has(key));
  const own = free.filter(({ key }) => key.startsWith("library/"));
  return own[0] ?? free[Math.floor(share * free.length)] ?? voices[0];
}
