/** Notices under the header, short messages over the page, and announcements for screen readers. */
import { byId, fromTemplate, setHidden, setText } from "./dom.js";
import { formatCount } from "./format.js";
import { localStore, sessionStore } from "./local_store.js";
import { t, translateServer } from "./texts.js";

const DISMISSED_KEY = "tableread.dismissed";
const CLOSED_KEY = "tableread.closed";
/** A shorter wait isn't announced. */
const WAIT_MS = 500;

function dismissed() {
  return new Set(sessionStore.json(DISMISSED_KEY, []));
}

/** The standing notices that somebody has closed in this browser. */
function closed() {
  return new Set(localStore.json(CLOSED_KEY, []));
}

/**
 * Show, change or (with `text` null) take away the notice called `name`.
 * A notice that was dismissed stays away until its text changes. `act` is a remedy at hand; who
 * dismisses the notice has chosen `dismiss`. A `standing` one has a place of its own, where it moves
 * nothing when it comes or goes, and once it is dismissed it stays away for good.
 *
 * @param {string} name
 * @param {{kind?: string, title?: string, text?: string|null,
 *   act?: {label: string, press: () => void}|null, dismiss?: (() => void)|null, standing?: boolean}} [about]
 */
export function showNotice(name, { kind = "info", title = "", text = null, act = null, dismiss = null, standing = false } = {}) {
  const list = byId(standing ? "notices-standing" : "notices");
  const old = [...list.children].find((row) => row.dataset.notice === name);
  const isClosed = standing ? closed().has(name) : dismissed().has(`${name}:${text}`);
  if (text === null || isClosed) return old?.remove();
  const row = old ?? list.appendChild(fromTemplate("notice-template"));
  row.dataset.notice = name;
  row.dataset.kind = kind;
  setText(row.querySelector(".notice-title"), title);
  setText(row.querySelector(".notice-text"), text);
  if (standing) row.title = text; // where there is room for its first words only
  const remedy = row.querySelector(".notice-act");
  setHidden(remedy, act === null);
  setText(remedy, act?.label ?? "");
  remedy.onclick = act?.press ?? null;
  row.querySelector(".notice-close").onclick = () => {
    if (standing) localStore.set(CLOSED_KEY, JSON.stringify([...closed(), name]));
    else if (!dismiss) sessionStore.set(DISMISSED_KEY, JSON.stringify([...dismissed(), `${name}:${text}`]));
    row.remove();
    dismiss?.();
  };
}

/**
 * Show a short message over the page, where it moves nothing, and announce it to screen readers.
 * `act` undoes what was done.
 *
 * @param {string} text @param {{label: string, press: () => void} | null} [act]
 */
export function showDone(text, act = null) {
  const row = laidOver(text, act);
  row.addEventListener("animationend", () => row.remove());
}

/** Announce a wait, once it is long enough to notice. @param {string} text @returns {() => void} to be called when it is over */
export function showProgressNotice(text) {
  let row = null;
  let isOver = false;
  const begin = () => {
    if (isOver) return;
    const before = laid();
    // A message with an undo button is shown for its full time first.
    if (before?.querySelector(".notice-act:not([hidden])")) return before.addEventListener("animationend", begin);
    row = laidOver(text);
    row.dataset.passing = "held";
  };
  setTimeout(begin, WAIT_MS);
  return () => {
    isOver = true;
    row?.remove();
  };
}

function laid() {
  return byId("part-model").querySelector("[data-passing]");
}

function laidOver(text, act = null) {
  const row = fromTemplate("notice-template");
  row.dataset.passing = "true";
  setText(row.querySelector(".notice-title"), text);
  setHidden(row.querySelector(".notice-act"), act === null);
  setText(row.querySelector(".notice-act"), act?.label ?? "");
  row.querySelector(".notice-act").onclick = () => {
    row.remove();
    act.press();
  };
  row.querySelector(".notice-close").onclick = () => row.remove();
  laid()?.remove();
  byId("notices").after(row);
  announce(text);
  return row;
}

/** Show the error of a user's action, even if the same one is shown already. */
export function showError(title, error) {
  const all = [...dismissed()].filter((key) => !key.startsWith("refused:"));
  sessionStore.set(DISMISSED_KEY, JSON.stringify(all));
  showNotice("refused", { kind: "error", title, text: error.message });
}

/** Announce something to screen readers. */
export function announce(text) {
  setText(byId("live"), text);
}

/** @import { Columns } from "./types" */

const SHOWN_NOTICES = 50;

/** @typedef {{name: string, notices: import("./types").Notice[]}} ReadWith what was read, and what there is to say of it */

/** @param {ReadWith} about of what is open @param {(rows: number[]) => void} show leads to the lines at these places */
export function noticeOpenedProject({ name, notices }, show) {
  noticeAll("opened", t`${name || t`Untitled`}: ${formatCount(notices.length, "warning")}.`, notices, show);
}

/** The same of a file or of what was pasted. @param {ReadWith} about @param {(rows: number[]) => void} [show] */
export function noticeImportedFile({ name, notices }, show) {
  noticeAll(`brought:${name}`, t`${name}: ${formatCount(notices.length, "warning")}.`, notices, show);
}

const NARRATOR = "Narrator";

/**
 * Offer another reading of a text: by a narrator, who speaks what is left out otherwise, or what characters say in a
 * story; with the times of subtitles; or a table by other columns.
 * @param {{unspoken?: number, quoted?: number, timed?: boolean, columns?: Columns | null}} about how many headings,
 * actions and directions, how many quotations, whether subtitles, the columns of a table
 * @param {(choice: import("./types").ReadingChoice & {ask?: Columns}) => void} read
 */
export function offerReading({ unspoken = 0, quoted = 0, timed = false, columns = null }, read) {
  const offer = (title, text, label, choice) => {
    const press = () => {
      showNotice("narrator");
      read(choice);
    };
    showNotice("narrator", { title, text, act: { label, press }, dismiss: () => {} });
  };
  const narrator = { narrator: NARRATOR };
  const left = formatCount(unspoken, "heading, action or direction", "headings, actions and directions");
  if (timed) offer(t`These are subtitles.`, t`Each line can begin when its subtitle does.`, t`Keep their times`, { fit: true });
  else if (quoted) offer(t`${formatCount(quoted, "quotation")} read by characters.`, t`One narrator can read all of it.`, t`Read by one narrator`, narrator);
  else if (columns) offer(t`This is a table.`, t`Each column can be read as something else.`, t`Choose columns`, { ask: columns });
  else offer(t`${left} not spoken.`, unspoken ? t`A narrator can read them.` : null, t`Add a narrator`, narrator);
}

function noticeAll(name, title, notices, show = undefined) {
  const places = [...new Set(notices.flatMap(({ rows = [] }) => rows))];
  const act = show && places.length ? { label: t`Show me`, press: () => show(places) } : null;
  const rest = notices.length - SHOWN_NOTICES;
  const said = [...notices.slice(0, SHOWN_NOTICES).map(sentence), ...(rest > 0 ? [t`And ${rest} more.`] : [])];
  // The notices of a file that is imported again are shown again.
  showNotice(name, { kind: "warning", title, text: said.join("\n") || null, act, dismiss: () => {} });
}

function sentence({ line_number: lineNumber, message }) {
  if (!lineNumber) return translateServer(message);
  const said = `Line ${lineNumber}: `; // as some of the studio's messages begin
  return t`Line ${lineNumber}: ${translateServer(message.startsWith(said) ? message.slice(said.length) : message)}`;
}
