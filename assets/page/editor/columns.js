/** What the columns of a table are read as: chosen over its first rows, and remembered for tables headed alike. */
import { askDialog, byId } from "../core/dom.js";
import { localStore } from "../core/local_store.js";
import { t } from "../core/texts.js";

/** @import { Columns, ReadingChoice } from "../core/types" */

const ROLES = {
  speaker: t`Speaker`,
  text: t`Text`,
  direction: t`Direction`,
  note: t`Note between the lines`,
  id: t`ID`,
  file: t`File name`,
  language: t`Language`,
  pause: t`Pause after the line`,
  "pause before": t`Pause before the line`,
  start: t`Start`,
  end: t`End`,
  "max duration": t`Longest duration`,
  audio: t`Audio file`,
  seed: t`Seed`,
  setting: t`Voice setting`,
  "": t`Not read`,
};
const MANY = new Set(["note", "setting", ""]); // what several columns may be

const keyOf = ({ headings }) => `columns:${JSON.stringify(headings)}`;

/** What was chosen for a table headed so; null where that is how it was read. @param {Columns | null} [columns] @returns {string[] | null} */
export function recallColumns(columns) {
  const chosen = columns && localStore.json(keyOf(columns), null);
  const fits = Array.isArray(chosen) && chosen.length === columns.headings.length;
  return fits && chosen.join("\n") !== columns.roles.join("\n") ? chosen : null;
}

/** Ask what the columns are read as, if that is the choice. @param {ReadingChoice & {ask?: Columns}} choice @returns {Promise<ReadingChoice | null>} null: nothing else was chosen */
export async function chooseColumns({ ask, ...choice }) {
  if (!ask) return choice;
  const dialog = byId("columns");
  const selects = ask.headings.map((heading, at) => roleMenu(heading, ask.roles[at]));
  for (const select of selects) {
    select.addEventListener("change", () => {
      const same = selects.find((other) => other !== select && other.value === select.value);
      if (same && !MANY.has(select.value)) same.value = "";
    });
  }
  byId("columns-head").replaceChildren(...ask.headings.map((heading, at) => cell("th", heading, selects[at])));
  byId("columns-rows").replaceChildren(...ask.rows.map((cells) => {
    const row = document.createElement("tr");
    row.append(...ask.headings.map((_, at) => cell("td", cells[at] ?? "")));
    return row;
  }));
  const answer = askDialog(dialog, "cancel");
  selects[0]?.focus();
  if ((await answer) !== "read") return null;
  const columns = selects.map(({ value }) => value);
  localStore.set(keyOf(ask), JSON.stringify(columns));
  return { ...choice, columns };
}

function roleMenu(heading, role) {
  const select = document.createElement("select");
  select.setAttribute("aria-label", heading || t`Column without a heading`);
  const known = role in ROLES ? ROLES : { ...ROLES, [role]: role };
  select.append(...Object.entries(known).map(([value, name]) => new Option(name, value, false, value === role)));
  return select;
}

function cell(tag, text, select = null) {
  const made = document.createElement(tag);
  const written = document.createElement("span");
  written.dir = "auto";
  written.textContent = text;
  made.append(written, ...(select ? [select] : []));
  if (tag === "th") made.setAttribute("scope", "col");
  return made;
}
