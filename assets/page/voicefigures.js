/** A recording in figures, as it is and as it was repaired, and what stands against it. */
import { fromTemplate, setHidden, setText } from "./dom.js";

const db = (value) => (value <= -119 ? "silent" : `${value.toFixed(0)} dB`);
const share = (value) => `${(100 * value).toFixed(value > 0 && value < 0.01 ? 2 : 0)} %`;

const ROWS = [
  ["Loudness of the speech", ({ speech_db: value }) => db(value)],
  ["Background", ({ noise_db: value }) => db(value)],
  ["Speech above background", (levels) => `${Math.max(0, levels.speech_db - levels.noise_db).toFixed(0)} dB`],
  ["Loudest moment", ({ peak_db: value }) => db(value)],
  ["At the loudest value", ({ clipped_share: value }) => share(value)],
  ["Speech", ({ speech_share: value }) => share(value)],
];

/** @param {HTMLElement} table @param {object} found what the studio found; `before` when repaired */
export function showFigures(table, { levels, before }) {
  const columns = before ? [before, levels] : [levels];
  setHidden(table.querySelector(".after"), !before);
  table.querySelector("tbody").replaceChildren(...ROWS.map(([name, show]) => row(name, columns.map(show))));
}

function row(name, values) {
  const made = document.createElement("tr");
  const head = document.createElement("th");
  head.scope = "row";
  setText(head, name);
  const cells = values.map((value) => {
    const cell = document.createElement("td");
    setText(cell, value);
    return cell;
  });
  made.append(head, ...cells);
  return made;
}

/** @param {HTMLElement} list @param {Array<object>} problems what was found, the worst first */
export function showFound(list, problems) {
  const fine = { kind: "fine", sign: "✓", message: "Nothing stands against this recording." };
  const rows = problems.map(({ message, fatal, code }) =>
    foundRow({ kind: fatal ? "error" : "warning", sign: fatal ? "✕" : "!", message, code }));
  list.replaceChildren(...(rows.length ? rows : [foundRow(fine)]));
}

function foundRow({ kind, sign, message, code = "" }) {
  const made = fromTemplate("found-template");
  Object.assign(made.dataset, { kind, code });
  setText(made.querySelector(".found-sign"), sign);
  setText(made.querySelector(".found-text"), message);
  return made;
}
