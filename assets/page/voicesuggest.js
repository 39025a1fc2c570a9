/** Which voice a speaker without one could have: from the library, else of the engine's own. */
import { fold } from "./format.js";

const SHORTEST_WORD = 3;

/**
 * @param {Array<object>} speakers of the dialog: {name, voice}
 * @param {Object<string, string>} choices ids of the library's voices by folded name
 * @param {Array<object>} library
 * @param {object} offer what the engine can do
 * @returns {Map<string, object>} by name: {label, voice} of the library, or {label, preset}
 */
export function suggestions(speakers, choices, library, offer) {
  const taken = takenVoices(speakers, choices, library);
  const open = speakers.filter(({ name, voice }) => voice === "built-in" && !choices[fold(name)]);
  const found = new Map();
  for (const { name } of open) {
    const match = library.find((one) => !taken.has(one.speaker_id) && hasVoice(one) && isLike(one, name));
    if (!match) continue;
    taken.add(match.speaker_id);
    found.set(name, { label: `voice of ${match.name}`, voice: match.speaker_id });
  }
  // Where every name has a built-in voice of its own, speakers sound apart already.
  const presets = offer && !offer.builtin_by_name ? offer.presets : [];
  for (const speaker of open.filter(({ name }) => !found.has(name))) {
    const preset = freePreset(presets, speakers.indexOf(speaker) / speakers.length, taken);
    if (!preset) break;
    taken.add(`preset ${preset.preset_id}`);
    found.set(speaker.name, { label: preset.label, preset: preset.preset_id });
  }
  return found;
}

/** Neighbours in an engine's list sound alike: speakers are spread over it, each at its own share. */
function freePreset(presets, share, taken) {
  const first = Math.floor(share * presets.length);
  const turned = [...presets.slice(first), ...presets.slice(0, first)];
  return turned.find(({ preset_id: id }) => !taken.has(`preset ${id}`));
}

/** Voices that somebody of the dialog has. */
function takenVoices(speakers, choices, library) {
  const names = new Set(speakers.map(({ name }) => fold(name)));
  const chosen = new Set(Object.values(choices));
  const used = library.filter(({ name, speaker_id: id }) => names.has(fold(name)) || chosen.has(id));
  const presets = used.filter(({ preset }) => preset).map(({ preset }) => `preset ${preset}`);
  return new Set([...used.map(({ speaker_id: id }) => id), ...presets]);
}

function hasVoice({ samples, preset, description }) {
  return samples.length > 0 || Boolean(preset) || Boolean(description);
}

/** Whether a voice goes by a speaker's name, or has it or a word of it among its tags. */
function isLike({ name, tags }, wanted) {
  const words = wordsOf(wanted);
  const own = new Set([...wordsOf(name), ...tags.flatMap((tag) => [fold(tag), ...wordsOf(tag)])]);
  return words.some((word) => own.has(word)) || own.has(fold(wanted));
}

/** Words of a name that say something: "Mrs. Vale (O.S.)" is told by "vale". */
function wordsOf(name) {
  const plain = fold(name).replace(/\(.*?\)/g, " ");
  return (plain.match(/\p{L}+/gu) ?? []).filter((word) => word.length >= SHORTEST_WORD && !TITLES.has(word));
}

const TITLES = new Set(["mrs", "miss", "the", "old", "young", "doctor", "frau", "herr", "sir", "lady", "and"]);
