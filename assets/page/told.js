/** What a person should know of a script or project that came in: it stays until it is closed. */
import { count } from "./format.js";
import { notice } from "./notices.js";

const SHOWN = 50;

/**
 * @param {{name: string, notices: Array<{line_number: number, message: string}>}} about of what is open
 * @param {() => void} show leads to the script, which marks the places
 */
export function tellOpened({ name, notices }, show) {
  const act = notices.some(({ line_number: lineNumber }) => lineNumber) ? { label: "Show in the script", press: show } : null;
  tell("opened", `${name || "Untitled"}: ${count(notices.length, "thing")} to know.`, notices, act);
}

/** The same of a file that was brought in before the one that is open. */
export function tellBrought({ name, notices }) {
  tell(`brought:${name}`, `${name}: ${count(notices.length, "thing")} to know.`, notices);
}

function tell(name, title, notices, act = null) {
  const rest = notices.length - SHOWN;
  const rows = [...notices.slice(0, SHOWN).map(sentence), ...(rest > 0 ? [`And ${rest} more.`] : [])];
  // The same file brought in again is told again.
  notice(name, { kind: "warning", title, text: rows.join("\n") || null, act, dismiss: () => {} });
}

function sentence({ line_number: lineNumber, message }) {
  const place = lineNumber ? `Line ${lineNumber}: ` : "";
  return message.startsWith(place) ? message : `${place}${message}`;
}
