/** Formats numbers and times for people. */
import { countedNoun, pageLanguage, t } from "./texts.js";

const languageNames = new Intl.DisplayNames([pageLanguage], { type: "language", fallback: "code" });
const PLAIN_CODE = /^[a-z]{2,3}(-[a-z]{2})?$/i;

/**
 * A language in the page's language. Some engines have codes that are none, which browsers refuse, or don't know.
 * @param {string} code @param {string} [name] what an engine calls it, in English @returns {string}
 */
export function languageName(code, name = code) {
  if (pageLanguage === "en" && name !== code) return name;
  const known = PLAIN_CODE.test(code) ? languageNames.of(code) : code;
  return known === code ? name : known;
}

/** The page's language as it is written where the browser's user lives, such as "de-AT". */
const locale = globalThis.navigator?.languages?.find((one) => one.split("-")[0] === pageLanguage) ?? pageLanguage;
const decimals = [0, 1, 2].map((digits) =>
  new Intl.NumberFormat(locale, { minimumFractionDigits: digits, maximumFractionDigits: digits, useGrouping: false }));

/** A number as the page's language writes it: "3.4", "3,4". @param {number} number @param {0 | 1 | 2} digits after the point @returns {string} */
export function formatDecimal(number, digits) {
  return decimals[digits].format(number);
}

const plain = new Intl.NumberFormat(locale, { useGrouping: false });

/** The same with as many digits as it has, at most three. @param {number} number @returns {string} */
export function formatNumber(number) {
  return plain.format(number);
}

/** @param {number} seconds @returns {string} "4:05", "1:02:09" */
export function formatClock(seconds) {
  const whole = Math.max(0, Math.floor(seconds));
  const s = String(whole % 60).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  if (minutes < 60) return `${minutes}:${s}`;
  return `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}:${s}`;
}

/** @param {number} seconds @returns {string} "3.4 s", from a minute on "1:04" */
export function formatLength(seconds) {
  return seconds < 60 ? `${formatDecimal(seconds, 1)} s` : formatClock(seconds);
}

/** @param {number} seconds until something is done @returns {string} "about 40 s left", "about 3 min left" */
export function formatLeft(seconds) {
  if (seconds < 10) return t`a few seconds left`;
  if (seconds < 90) return t`about ${5 * Math.round(seconds / 5)} s left`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return t`about ${minutes} min left`;
  return t`about ${Math.floor(minutes / 60)} h ${minutes % 60} min left`;
}

/** @param {number} n @param {string} one @param {string} [many] @returns {string} */
export function formatCount(n, one, many = `${one}s`) {
  return countedNoun(n, one, many);
}

/** @param {number} bytes @returns {string} in kB, MB or GB of 10^3, 10^6 and 10^9 bytes */
export function formatBytes(bytes) {
  if (bytes < 1e6) return t`${Math.ceil(bytes / 1e3)} kB`;
  return bytes < 1e9 ? t`${Math.round(bytes / 1e6)} MB` : t`${formatDecimal(bytes / 1e9, 1)} GB`;
}

/** Names that differ only in case mean one speaker. @param {string} name */
export function fold(name) {
  return name.trim().toLowerCase();
}

/** @param {string} time ISO 8601 @returns {string} the time of a day that is today, else its date */
export function formatDay(time) {
  const then = new Date(time);
  const today = then.toDateString() === new Date().toDateString();
  return today
    ? then.toLocaleTimeString(locale, { hour: "2-digit", minute: "2-digit" })
    : then.toLocaleDateString(locale, { year: "numeric", month: "short", day: "numeric" });
}

/** @param {string} time ISO 8601 @param {number} [now_ms] @returns {string} "just now", "5 min ago", "2 h ago", "3 days ago", or the date */
export function formatAgo(time, now_ms = Date.now()) {
  const minutes = (now_ms - new Date(time).getTime()) / 60_000;
  if (minutes < 1) return t`just now`;
  if (minutes < 60) return t`${Math.floor(minutes)} min ago`;
  if (minutes < 24 * 60) return t`${Math.floor(minutes / 60)} h ago`;
  return minutes < 7 * 24 * 60 ? t`${formatCount(Math.floor(minutes / (24 * 60)), "day")} ago` : formatDay(time);
}

/** @param {string} time ISO 8601 @returns {string} date and time of day */
export function formatDate(time) {
  return new Date(time).toLocaleString(locale, { dateStyle: "full", timeStyle: "short" });
}

/** @param {number} at_s seconds since 1970 @returns {string} day and time of day, short */
export function formatDateTime(at_s) {
  return new Date(at_s * 1000).toLocaleString(locale, { dateStyle: "medium", timeStyle: "short" });
}

/** @param {string | number} iso a time as in ISO 8601, or milliseconds @returns {string} the day */
export function formatFullDay(iso) {
  return new Date(iso).toLocaleDateString(locale, { dateStyle: "medium" });
}
