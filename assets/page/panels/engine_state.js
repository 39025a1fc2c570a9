/** The studio's state in words and figures, and what of it is news; knows nothing of the page. */
import { formatBytes, formatClock, formatCount } from "../core/format.js";
import { t } from "../core/texts.js";

/** @import { ModelStatus, RecogniserCard, RecogniserStatus, StudioState } from "../core/types" */

const WORDS = {
  unloaded: t`not loaded`,
  loading: t`loading…`,
  loaded: t`ready`,
  unloading: t`unloading…`,
  failed: t`failed`,
};

/** Parts that change with every line that is read. */
const BUSY_PARTS = new Set(["engine", "model", "downloads", "recogniser_models"]);

/**
 * Whether other voices may speak than before, or something else is new besides how far the work is.
 * @param {Partial<StudioState>} parts that changed @param {StudioState | null} known before
 */
export function isNews(parts, known) {
  const isWork = Object.keys(parts).every((name) => BUSY_PARTS.has(name));
  return !isWork || (parts.model !== undefined && parts.model.state !== known?.model.state);
}

/**
 * The model some time after the studio described it: the countdown to its unloading runs in the page.
 * @template {Pick<ModelStatus, "unload_in_s">} Model
 * @param {Model} model @param {number} elapsed_ms since @returns {Model}
 */
export function countDown(model, elapsed_ms) {
  const { unload_in_s: left } = model;
  return left === null ? model : { ...model, unload_in_s: Math.max(0, left - elapsed_ms / 1000) };
}

/** @param {Pick<ModelStatus, "state" | "active" | "fraction">} model */
export function chipWords(model) {
  if (model.state === "loaded" && model.active > 0) return t`speaking`;
  if (model.state === "loading" && model.fraction !== null) {
    return t`loading, ${Math.floor(100 * model.fraction)} %`;
  }
  return WORDS[model.state];
}

/** The same for the engine's panel, with the countdown to the unloading. @param {RecogniserStatus} model */
export function stateWords(model) {
  const { state, active, unload_in_s: left } = model;
  return state === "loaded" && !active && left !== null ? t`unloads in ${formatClock(left)}` : chipWords(model);
}

/** The state of a recogniser; nothing of one that isn't in memory. @param {RecogniserStatus | undefined} model */
export function listeningWords(model) {
  if (!model || model.state === "unloaded") return "";
  return model.state === "loaded" && model.active > 0 ? t`listening` : stateWords(model);
}

/** Whether takes are listened to for their words. @param {RecogniserCard[]} cards */
export function hearsWords(cards) {
  return cards.some(({ purpose, reason, to_fetch: toFetch }) => purpose === "words" && !reason && !toFetch);
}

/**
 * What a model that listens is used for now that it is here: a recogniser for the takes of some languages.
 * @param {RecogniserCard} card @param {(languages: string[]) => string} nameLanguages
 */
export function useWords({ purpose, to_fetch: toFetch, reason, used_for: used }, nameLanguages) {
  if (reason || toFetch) return "";
  if (purpose === "voices") return t`Compares the voices of new takes.`;
  if (purpose === "noise") return t`Removes noise from voice samples.`;
  if (!used.length) return t`Not used: a recogniser above knows its languages, too.`;
  return t`Checks takes in ${nameLanguages(used)}.`;
}

/** An engine with slots renders many lines in one pass, and the number above doesn't apply to it. */
export function slotWords({ slots, usable_slots: usable }) {
  if (slots && usable && usable < slots) {
    return t`This voice generates ${usable} of ${slots} lines in parallel since it ran out of memory or failed; it recovers by itself.`;
  }
  return slots ? t`This voice generates up to ${slots} lines in one pass, whatever the setting.` : "";
}

/** @param {ModelStatus} model */
export function memoryChange({ memory_before: before, memory_after: after }) {
  if (!before || !after) return "—";
  const change = t`${formatBytes(before.resident_bytes)} to ${formatBytes(after.resident_bytes)}`;
  if (before.device_bytes === null) return change;
  return t`${change}; on the device ${formatBytes(before.device_bytes)} to ${formatBytes(after.device_bytes)}`;
}

const REAL_TIME = 1;

/**
 * Where a card stands: what speaks now, then what a download brings, each first where it is as fast as speech
 * here; then what needs programs, then what can't be had by a press.
 * @param {import("../core/types").EngineCard} card
 */
export function cardRank({ reason, to_fetch: toFetch, large_packages: large, speed, expected_speed: expected }) {
  if (reason) return large ? 4 : 5;
  const slow = (speed ?? expected ?? REAL_TIME) < REAL_TIME;
  return (toFetch ? 2 : 0) + Number(slow);
}

/** How fast an engine is here. @param {Pick<import("../core/types").EngineCard, "speed" | "expected_speed">} card @returns {string} */
export function speedWords({ speed, expected_speed: expected }) {
  if (speed) return t`${formatSpeed(speed)} s of speech a second`;
  if (!expected) return "";
  return expected < 1 ? t`Not measured here; likely slower than real time` : t`Not measured here; likely faster than real time`;
}

function formatSpeed(speed) {
  return speed < 10 ? String(Number(speed.toPrecision(2))) : String(Math.round(speed));
}

/**
 * The licences; what forbids commercial use is said first, in its own line.
 * @param {{code_licence: string, weights_licence: string}} card @param {boolean} [speaks] whether it is an engine's
 */
export function licenceWords({ code_licence: code, weights_licence: weights }, speaks = true) {
  if (!code) return "";
  if (!weights || weights === code) return t`Licence: ${code}`;
  return speaks ? t`Licence: ${code}; the voice itself: ${weights}` : t`Licence: ${code}; the model itself: ${weights}`;
}

/** Whose voices it speaks in, and whether it says a line twice the same. @param {Pick<import("../core/types").EngineCard, "cloning" | "presets" | "described_voices" | "seeded">} card */
export function voiceWords({ cloning, presets, described_voices: described, seeded }) {
  const kinds = [];
  if (cloning) kinds.push(t`voices cloned from recordings`);
  if (presets) kinds.push(formatCount(presets, "built-in voice"));
  if (described) kinds.push(t`voices from a description`);
  if (seeded === false) kinds.push(t`every take differs slightly`);
  const words = kinds.join(", ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Natural voices that are here and as fast as speech, with voices of their own; the best first. @param {import("../core/types").EngineCard[]} cards @returns {string[]} their names */
export function readyVoices(cards) {
  const isNatural = (card) => card.name !== "draft" && card.presets > 0 && cardRank(card) === 0;
  return cards.filter(isNatural).map(({ name }) => name);
}

/** @param {string[]} offered names, the best fit first @param {import("../core/types").EngineCard[]} cards @param {Set<string>} languages that the scene names, without their regions */
export function firstVoice(offered, cards, languages) {
  const fits = ({ language_codes: codes }) => {
    const known = new Set(codes.map((code) => code.split("-")[0]));
    return [...languages].every((language) => known.has(language));
  };
  const found = offered.map((name) => cards.find((card) => card.name === name));
  return found.find((card) => card && fits(card)) ?? null;
}
