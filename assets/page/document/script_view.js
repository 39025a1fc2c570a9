/** The dialog as one text: typed or pasted here, it is merged into the lines, which keep their takes. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, fromTemplate, isLaidOut, setHidden, setText } from "../core/dom.js";
import { fold, formatCount } from "../core/format.js";
import { noticeImportedFile, offerReading, showDone, showError, showNotice } from "../core/notices.js";
import { t, translateServer } from "../core/texts.js";
import { namingOps } from "./naming.js";
import { offsetShift, ScriptDraft, serializeLines } from "./script_text.js";

/** @import { PageElement } from "../core/types" */

const TYPED = "input, textarea, select, [contenteditable]";
const MOST_CHARS = 1_000_000;

/** @param {PageElement} area @param {(read: import("../core/types").ReadLines) => void} brought is told what was pasted */
export function listenForPaste(area, brought) {
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain").replace(/\r\n?/g, "\n");
    if (!text || !isMeant(event, area)) return;
    event.preventDefault();
    area.focus();
    const from = area.selectionStart;
    insertText(text);
    if (text.trim().includes("\n") && text.length <= MOST_CHARS) readAsLines(area, [from, text], brought);
  });
}

function isMeant({ defaultPrevented, target }, area) {
  if (defaultPrevented || area.readOnly || !isLaidOut(area)) return false;
  return target === area || !(target.closest(TYPED) || document.querySelector("dialog[open]"));
}

/** What isn't a plain script is read by itself, before the script around it makes something else of it. */
async function readAsLines(area, [from, text], brought) {
  const pasted = area.value;
  const unread = { chat: false, plain: true, lines: [], notices: [], unspoken: 0, quoted: 0, timed: false }; // the script view reports its own errors
  const read = await api.readLines(new Blob([text])).catch(() => unread);
  const { chat, plain, lines, notices } = read;
  if (lines.length) brought(read);
  if (plain || area.value !== pasted || area.readOnly) return; // or somebody is typing
  const script = replaceRange(area, [from, from + text.length], serializeLines(lines));
  offerBack(area, lines, chat ? t`a chat` : t`a script`);
  noticeImportedFile({ name: t`The clipboard`, notices });
  offerReading({ ...read, columns: null }, async (choice) => {
    const again = await api.readLines(new Blob([text]), "", choice);
    const to = from + script.length;
    // What was typed there since stays as it is.
    if (area.value.slice(from, to) === script) replaceRange(area, [from, to], serializeLines(again.lines));
  });
}

/** A step of its own in the browser's undo history, so that one undo leads back to the text as pasted. @returns {string} what was inserted */
function replaceRange(area, [from, to], script) {
  area.focus();
  area.setSelectionRange(from, to);
  const begins = from === 0 || area.value[from - 1] === "\n";
  const inserted = begins ? script : `\n${script}`;
  insertText(inserted);
  return inserted;
}

/** Only `execCommand` changes text in a way that the browser can undo. */
function insertText(text) {
  document.execCommand("insertText", false, text);
}

function offerBack(area, lines, what) {
  const after = area.value;
  const press = () => {
    area.focus();
    if (area.value === after) document.execCommand("undo");
  };
  const spoken = lines.filter(({ speaker }) => speaker);
  const speakers = new Set(spoken.map(({ speaker }) => fold(speaker))).size;
  showDone(t`Read as ${what}: ${formatCount(spoken.length, "line")} of ${formatCount(speakers, "speaker")}.`, { label: t`As pasted`, press });
}

const PAUSE_MS = 300;
const SHOWN_PROBLEMS = 50;
const DISPUTED = t`Someone else changed the dialog in the meantime. Compare both versions and choose.`;

/** The script's text area: shows the studio's text, sends changes, and keeps refused ones. */
export class ScriptView {
  #area = byId("script");
  #project;
  #lead;
  #compare;
  #draft = new ScriptDraft();
  #timer = null;
  #asking = false;
  // The revision that the text in the box is based on; null until it was fetched.
  #rev = null;
  #stale = true;
  // Whether the text in the box has unsent changes.
  #own = false;
  #trouble = null;

  /**
   * @param {import("./project.js").Project} project
   * @param {{lead: () => void, compare: (about: import('./conflict_dialog.js').TwoTexts) => void}} ways shows this view; shows two versions
   */
  constructor(project, { lead, compare }) {
    this.#project = project;
    this.#lead = lead;
    this.#compare = compare;
    this.#area.addEventListener("input", () => this.#typed());
    this.#area.addEventListener("keydown", (event) => {
      if (event.key === "Escape") this.#area.blur();
    });
    this.#area.addEventListener("blur", () => this.put());
    listenForPaste(this.#area, (read) => this.#name(read));
    byId("draft-compare").addEventListener("click", () => this.#dispute());
    byId("draft-drop").addEventListener("click", () => this.#drop());
    bus.on("project.flushing", () => this.put());
    bus.on("project.changed", (change) => this.#changed(change));
    bus.on("project.script", (about) => this.#answered(about));
    bus.on("project.shown", () => this.forget());
  }

  /** The view, or another project, is shown. */
  async show() {
    this.#count();
    this.#showTrouble();
    const { id, rev } = this.#project;
    const isCurrent = !this.#stale && rev <= this.#rev;
    if (!id || this.#own || this.#asking || isCurrent || !this.shown) return;
    this.#asking = true;
    this.#stale = false;
    try {
      await this.#project.flush();
      const script = await api.readScript(id);
      if (id === this.#project.id && !this.#own) this.#take(script);
    } catch (error) {
      this.#stale = true;
      this.#asking = false;
      return showError(t`Couldn’t show the script`, error);
    }
    this.#asking = false;
    return this.show();
  }

  get shown() {
    return isLaidOut(this.#area);
  }

  /** The view is hidden. */
  left() {
    this.put();
    this.#showTrouble();
  }

  /** Another project: what is shown is not its text; its unsent text is offered again. */
  forget() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#free();
    const left = this.#draft.open(this.#project.id);
    this.#area.value = left?.text ?? "";
    this.#area.readOnly = !left;
    this.#rev = left?.rev ?? null;
    this.#problems([], "notice");
    if (left) this.#restore(left);
    return this.show();
  }

  /** Send changes of the script, if there are any. */
  put() {
    if (this.#timer === null) return;
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#put();
  }

  /** Scroll to a line of the text and select it. @param {number} lineNumber 1-based */
  reveal(lineNumber, { focus = true } = {}) {
    const rows = this.#area.value.split("\n");
    const start = rows.slice(0, lineNumber - 1).reduce((sum, row) => sum + row.length + 1, 0);
    if (focus) this.#area.focus({ preventScroll: true });
    this.#area.setSelectionRange(start, start + (rows[lineNumber - 1] ?? "").length);
    const share = start / Math.max(1, this.#area.value.length);
    this.#area.scrollTop = share * this.#area.scrollHeight - this.#area.clientHeight / 3;
  }

  /** What is pasted into an empty script names a project that has no name yet. */
  #name(read) {
    const [op] = this.#project.lines.length ? [] : namingOps(this.#project.view.name, read);
    if (op) this.#project.edit([op], { group: "script" });
  }

  #typed() {
    this.#own = true;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.put(), PAUSE_MS);
  }

  #put() {
    this.#draft.keep(this.#area.value, this.#rev);
    this.#project.putScript(this.#area.value, this.#rev);
  }

  #restore({ text, rev }) {
    this.#own = true;
    this.#draft.keep(text, rev);
    // A script that is being sent already gets its own response.
    if (this.#project.unsentScript !== text) this.#put();
  }

  /** Replace the text in the box by the studio's; the caret stays at its words. */
  #take({ rev, text, notices }) {
    this.#rev = rev;
    this.#area.readOnly = false;
    this.#problems([...this.#project.notices, ...notices], "notice");
    const { value: before, selectionStart, selectionEnd, scrollTop } = this.#area;
    if (before === text) return;
    this.#area.value = text;
    const at = offsetShift(before, text);
    this.#area.setSelectionRange(at(selectionStart), at(selectionEnd));
    this.#area.scrollTop = scrollTop;
  }

  #answered({ batch, answer = null, error = null }) {
    if (!this.#own) return;
    if (error) {
      this.#trouble = error;
      const message = error.status === 409 ? DISPUTED : error.message;
      this.#problems([{ line_number: error.line, message }], "error");
      return this.#showTrouble();
    }
    // A second request fetches the text again, as others may have changed it.
    this.#rev = batch.again ? this.#rev : answer.rev;
    if (this.#timer !== null || this.#area.value !== batch.text) return;
    this.#draft.forget();
    this.#free();
    this.#stale = Boolean(batch.again);
    this.#problems(answer.notices ?? [], "notice");
    this.show();
  }

  /** Show the studio's text if the box has no unsent changes. */
  #free() {
    this.#own = false;
    this.#stale = true;
    this.#trouble = null;
  }

  #drop() {
    clearTimeout(this.#timer);
    this.#timer = null;
    this.#draft.forget();
    this.#free();
    this.show();
  }

  /** Two people changed the script: show both versions side by side, with a choice. */
  async #dispute() {
    const { id } = this.#project;
    try {
      const { rev, text } = await api.readScript(id);
      const keepMine = () => {
        this.#rev = rev;
        this.#put();
      };
      const about = { mine: this.#area.value, theirs: text, keepMine, keepTheirs: () => this.#drop() };
      if (id === this.#project.id && this.#trouble) this.#compare(about);
    } catch (error) {
      showError(t`Couldn’t compare the script`, error);
    }
  }

  #changed({ meta }) {
    this.#count();
    if (this.#own) return;
    const isFocused = document.activeElement === this.#area;
    if (!isFocused && (meta || this.#project.rev > this.#rev)) this.#stale = true;
    this.show();
  }

  #count() {
    const speech = this.#project.lines.filter(({ kind }) => kind === "speech").length;
    const speakers = this.#project.view.speakers.length;
    const summary = `${formatCount(speech, "line")}, ${formatCount(speakers, "speaker")}`;
    setText(byId("script-count"), speech ? summary : "");
  }

  #showTrouble() {
    setHidden(byId("script-draft"), !this.#trouble);
    setHidden(byId("draft-compare"), this.#trouble?.status !== 409);
    const text = this.#trouble && !this.shown ? this.#trouble.message : null;
    const act = { label: t`Show it`, press: () => this.#lead() };
    showNotice("script-draft", { kind: "warning", title: t`The script has a draft that isn’t applied yet.`, text, act });
  }

  #problems(found, kind) {
    this.#area.setAttribute("aria-invalid", String(kind === "error"));
    const rows = found.slice(0, SHOWN_PROBLEMS).map((problem) => this.#problem(problem, kind));
    byId("problems").replaceChildren(...rows);
  }

  #problem({ line_number: lineNumber, message }, kind) {
    const row = fromTemplate("problem-template");
    row.dataset.kind = kind;
    const place = lineNumber ? t`Line ${lineNumber}` : "";
    setText(row.querySelector(".problem-place"), place);
    // An error's message starts with its line, which is shown only once, as the place.
    const said = translateServer(message);
    const start = lineNumber ? t`Line ${lineNumber}: ${""}` : "";
    setText(row.querySelector(".problem-text"), said.startsWith(start) ? said.slice(start.length) : said);
    row.querySelector("button").disabled = !lineNumber;
    row.querySelector("button").addEventListener("click", () => this.reveal(lineNumber));
    return row;
  }
}
