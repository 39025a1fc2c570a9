/**
 * The dialog of the project's pronunciations: list, search, preview, import and export; and the buttons that
 * open it.
 */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, focusedElement, isDirty, markedText, setHidden, setText } from "../core/dom.js";
import { fold, formatCount } from "../core/format.js";
import { t, translateServer } from "../core/texts.js";
import { PreviewButton } from "../playback/preview_button.js";
import { PronunciationRows } from "./pronunciation_rows.js";

/** @import { Parts } from "../core/types" */

const QUIET_MS = 200;
const SEARCHED_FROM = 9;
const input = (name) => byId(`pronunciation-${name}`);

/** The dialog that lists them. */
export class PronunciationList {
  #dialog = byId("pronunciations");
  #project;
  #commands;
  #sound = new PreviewButton();
  #rows = new PronunciationRows({
    change: (remove, put) => this.#change(remove, put),
    preview: (button, text) => this.#preview(button, text),
    showProblem: (message) => this.#showProblem(message),
  });
  #timer = null;
  #asked = 0;
  #unfollow = [];

  /** @param {Pick<Parts, "project" | "commands">} parts */
  constructor({ project, commands }) {
    this.#project = project;
    this.#commands = commands;
    this.#listen();
    bus.on("project.opened", () => this.#dialog.close());
  }

  /** @param {string} [word] that is to be said otherwise */
  open(word = "") {
    const all = this.#project.view.pronunciations;
    const known = word && this.#rows.like(word, all);
    input("search").value = known && all.length >= SEARCHED_FROM ? known.written : "";
    if (!this.#dialog.open) this.#begin();
    this.#show();
    if (known) return this.#rows.focus(known.written);
    if (word) input("written").value = word;
    (word ? input("spoken") : input("written")).focus();
    return this.#soon();
  }

  #begin() {
    this.#rows.sort();
    this.#blank();
    this.#showProblem("");
    this.#link();
    this.#offerVoices();
    this.#dialog.showModal();
    this.#unfollow.forEach((end) => end());
    this.#unfollow = [
      bus.on("project.changed", (change) => this.#follow(change)),
      bus.on("project.saving", () => this.#soon()),
      // The page's own notice is hidden behind this dialog.
      bus.on("project.refused", ({ error }) => this.#showProblem(error.message)),
    ];
    this.#soon();
  }

  #ended() {
    if (this.#dialog.open) return; // it was opened again before this event
    this.#unfollow.forEach((end) => end());
    this.#unfollow = [];
    this.#sound.hush();
  }

  #listen() {
    byId("pronunciations-close").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("close", () => this.#ended());
    this.#dialog.addEventListener("keydown", (event) => this.#key(event));
    input("new").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#add();
    });
    for (const name of ["written", "spoken", "case"]) {
      input(name).addEventListener("input", () => this.#soon());
    }
    input("written").addEventListener("input", () => this.#say(""));
    input("written").addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || !input("written").value.trim()) return;
      event.preventDefault();
      input("spoken").focus();
    });
    input("hear").addEventListener("click", () =>
      this.#preview(input("hear"), input("spoken").value || input("written").value));
    input("search").addEventListener("input", () => this.#show());
    byId("pronunciation-more").addEventListener("click", () => this.#rows.more());
    input("import").addEventListener("click", () => input("file").click());
    input("file").addEventListener("change", () => this.#import());
    this.#sound.events.on("fault", (fault) => this.#showProblem(fault.message));
  }

  /** Undo and redo of the project apply to the list, too. */
  #key(event) {
    const { key, ctrlKey, metaKey, shiftKey, target } = event;
    const letter = (ctrlKey || metaKey) && key.toLowerCase();
    if (!["z", "y"].includes(letter) || isDirty(target)) return;
    event.preventDefault();
    this.#commands.travel(letter === "z" && !shiftKey ? "undo" : "redo");
  }

  #add() {
    const entry = this.#written();
    if (!entry) {
      this.#showProblem(t`Enter the word as it appears in the script.`);
      return input("written").focus();
    }
    this.#change([], [entry]);
    this.#blank();
    return input("written").focus();
  }

  /** The entry in the fields; null without a word. */
  #written() {
    const written = clean(input("written").value);
    if (!written) return null;
    const spoken = clean(input("spoken").value);
    return { written, spoken, match_case: input("case").checked, enabled: true };
  }

  #blank() {
    for (const name of ["written", "spoken"]) input(name).value = "";
    input("case").checked = false;
    setText(byId("pronunciation-reach"), "");
  }

  #change(remove, put) {
    this.#showProblem("");
    this.#project.edit([{ op: "pronounce", remove, put }]);
    this.#project.flush();
  }

  #follow({ meta, ids, order }) {
    if (meta) {
      this.#show();
      this.#offerVoices();
    }
    if (meta || order || ids.size) this.#soon();
  }

  #show() {
    const all = this.#project.view.pronunciations;
    setHidden(input("search"), all.length < SEARCHED_FROM && !input("search").value);
    const wanted = fold(input("search").value);
    const found = all.filter(({ written, spoken }) => fold(`${written} ${spoken}`).includes(wanted));
    this.#rows.show(found);
    setText(byId("pronunciations-count"), found.length < all.length ? t`${found.length} of ${all.length}` : String(all.length || ""));
    setHidden(byId("pronunciation-table"), !found.length);
    setHidden(byId("pronunciation-none"), found.length > 0 || !all.length);
    for (const name of ["csv", "text"]) setHidden(byId(`pronunciation-${name}`), !all.length);
  }

  #link() {
    for (const [name, format] of /** @type {const} */ ([["csv", "csv"], ["text", "txt"]])) {
      byId(`pronunciation-${name}`).href = api.pronunciationsUrl(this.#project.id, format);
    }
  }

  #offerVoices() {
    const select = input("voice");
    const names = this.#project.view.speakers.map(({ name }) => name);
    if (!names.length) names.push("Speaker 1");
    const shown = [...select.options].map(({ value }) => value);
    if (JSON.stringify(shown) === JSON.stringify(names)) return;
    const chosen = select.value;
    select.replaceChildren(...names.map((name) => new Option(name, name)));
    if (names.includes(chosen)) select.value = chosen;
  }

  #preview(button, text) {
    this.#showProblem("");
    if (!text.trim()) return this.#showProblem(t`Nothing to play: this word is silent.`);
    return this.#sound.toggle(button, (signal) => api.previewPronunciation(this.#project.id, input("voice").value, text, signal));
  }

  async #import() {
    const [file] = input("file").files;
    input("file").value = "";
    if (!file) return;
    try {
      const { entries, notices } = await api.readPronunciations(this.#project.id, file);
      this.#change([], entries);
      const read = t`${formatCount(entries.length, "pronunciation")} imported.`;
      this.#say([read, ...notices.map(({ message }) => translateServer(message))].join(" "));
    } catch (error) {
      this.#showProblem(error.message);
    }
  }

  #showProblem(message) {
    const problem = byId("pronunciation-problem");
    setText(problem, message);
    setHidden(problem, !message);
  }

  #say(text) {
    setText(byId("pronunciation-reach"), text);
  }

  #soon() {
    if (this.#timer !== null || !this.#dialog.open) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#ask();
    }, QUIET_MS);
  }

  /** The studio only knows acknowledged edits, so wait until they are. */
  async #ask() {
    const { id, saving } = this.#project;
    if (!this.#dialog.open || saving !== "saved") return;
    const asked = (this.#asked += 1);
    const entry = this.#written();
    try {
      const found = await api.pronunciationReach(id, entry);
      if (asked !== this.#asked || id !== this.#project.id) return;
      this.#rows.reach(found);
      if (entry && entry.written === this.#written()?.written) this.#say(reached(found.lines[found.asked], entry.spoken && found.example, found.hints[found.asked]));
    } catch (error) {
      this.#showProblem(error.message);
    }
  }
}

function reached(lines, example, hints = []) {
  if (!lines) return [t`No line contains it as a separate word.`, ...hints].join(" ");
  const shown = example && example[0] !== example[1] ? t`“${short(example[0])}” becomes “${short(example[1])}”` : "";
  return [t`In ${formatCount(lines, "line")}.`, shown, ...hints].filter(Boolean).join(" ");
}

function short(text) {
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}

function clean(text) {
  return text.normalize("NFC").trim().replace(/\s+/g, " ");
}

const LONGEST_WORD = 200;

/** The buttons that open the dialog, and the word that was selected. */
export class PronunciationLinks {
  #selection;
  #list;
  #marked = { lineId: null, word: "" };

  /** @param {Pick<Parts, "project" | "selection" | "commands">} parts */
  constructor({ project, selection, commands }) {
    this.#selection = selection;
    this.#list = new PronunciationList({ project, commands });
    document.addEventListener("selectionchange", () => this.#notice());
    byId("pronunciations-open").addEventListener("click", () => this.#list.open());
    byId("line-pronounce").addEventListener("click", () => this.open());
  }

  /** Open the dialog, with the selected word filled in. */
  open() {
    this.#list.open(this.#word());
  }

  #word() {
    if (focusedElement()?.matches("#script")) return shortWord(markedText());
    this.#notice();
    return this.#marked.lineId === this.#selection.current ? this.#marked.word : "";
  }

  /** Remember the selected word of a row, as a press on a button removes the selection. */
  #notice() {
    const { anchorNode, focusNode, isCollapsed } = getSelection();
    const at = anchorNode instanceof Element ? anchorNode : anchorNode?.parentElement;
    const text = at?.closest(".line-text");
    if (!text?.contains(focusNode)) return;
    const lineId = text.closest(".line").getAttribute("data-line");
    this.#marked = { lineId, word: isCollapsed ? "" : shortWord(String(getSelection())) };
  }
}

function shortWord(text) {
  const word = text.trim().replace(/\s+/g, " ");
  return word.length <= LONGEST_WORD ? word : "";
}
