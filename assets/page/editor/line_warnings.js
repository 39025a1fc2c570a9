/**
 * Warnings about lines before a render and quality issues after it: fetched as lines change, shown as
 * a badge on the row and in the panel.
 */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, setHidden, setText } from "../core/dom.js";
import { languageName } from "../core/format.js";
import { announce, showError, showNotice } from "../core/notices.js";
import { t, translateServer } from "../core/texts.js";
import { lineIssues } from "../document/document.js";

/** @import { LineDirection, Misread, Parts } from "../core/types" */

const PAUSE_MS = 300;
const MOST_LINES = 500;
const NONE = [];

/** Fetches the warnings about lines; emits "checks.changed". */
export class LineChecks {
  #project;
  #known = new Map();
  #directions = new Map();
  #asked = new Map();
  #ground = null;
  #timer = null;
  #turn = 0;
  #voices = null;

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    bus.on("project.changed", () => this.#soon());
    bus.on("project.saving", () => this.#soon());
    bus.on("engine.state", (state) => this.#followVoices(state));
  }

  /** @param {string} lineId @returns {string[]} sentences */
  of(lineId) {
    return this.#known.get(lineId) ?? NONE;
  }

  /** @param {string} lineId @returns {LineDirection[]} the stage directions in its text */
  directionsOf(lineId) {
    return this.#directions.get(lineId) ?? NONE;
  }

  /** How many stage directions no voice follows. */
  get unfollowed() {
    return [...this.#directions.values()].flat().filter(({ followed }) => !followed).length;
  }

  /** The voice engine or the library changed: fetch all warnings again. */
  #followVoices({ backend, speakers, model }) {
    const voices = JSON.stringify([backend.name, speakers, model.state === "loaded"]);
    if (voices === this.#voices) return;
    this.#voices = voices;
    this.#asked.clear();
    this.#soon();
  }

  #soon() {
    if (this.#timer !== null) return;
    this.#timer = setTimeout(() => {
      this.#timer = null;
      this.#ask();
    }, PAUSE_MS);
  }

  /** The studio only knows acknowledged edits, so wait until they are. */
  async #ask() {
    const { id, view, saving } = this.#project;
    if (!id || saving !== "saved") return;
    const ground = JSON.stringify([id, view.cast, view.settings]);
    if (ground !== this.#ground) this.#asked.clear();
    this.#ground = ground;
    const fresh = this.#changed();
    if (!fresh.length) return this.#take([], {}, {});
    const turn = (this.#turn += 1);
    const ids = fresh.length > MOST_LINES ? null : fresh.map(([lineId]) => lineId);
    try {
      const { hints, directions, misread } = await api.checkLines(id, ids);
      if (turn !== this.#turn) return;
      noticeMisread(this.#project, misread);
      for (const [lineId, about] of fresh) this.#asked.set(lineId, about);
      this.#take(ids ?? view.order, hints, directions);
    } catch (error) {
      if (error.status && error.status !== 404) showError(t`Couldn’t check the lines`, error);
    }
  }

  /** The lines that have changed since their last check. */
  #changed() {
    return this.#project.lines
      .filter(({ kind }) => kind !== "silence")
      .map(({ line_id: lineId, speaker, text, language, params, path, take, spoken }) =>
        [lineId, JSON.stringify([speaker, text, language, params, path, path && !take, spoken])])
      .filter(([lineId, about]) => this.#asked.get(lineId) !== about);
  }

  #take(asked, found, directions) {
    const ids = new Set();
    const keep = (all, lineId, some) => {
      if (JSON.stringify(all.get(lineId) ?? NONE) === JSON.stringify(some)) return;
      if (some.length) all.set(lineId, some);
      else all.delete(lineId);
      ids.add(lineId);
    };
    const put = (lineId, messages, marks = NONE) => {
      keep(this.#known, lineId, messages);
      keep(this.#directions, lineId, marks);
    };
    for (const lineId of asked) put(lineId, (found[lineId] ?? NONE).map(translateServer), directions[lineId]);
    for (const lineId of [...this.#asked.keys(), ...this.#known.keys(), ...this.#directions.keys()]) {
      if (this.#project.line(lineId)) continue;
      this.#asked.delete(lineId); // undo may bring the line back
      put(lineId, NONE);
    }
    if (ids.size) bus.emit("checks.changed", { ids });
  }
}

/** Text in another language than it is read in: one notice for the project, which mends it. @param {Misread | null} misread */
function noticeMisread(project, misread) {
  if (!misread) return showNotice("language");
  const { language, speakers } = misread;
  const [own, other] = [language, misread.read_as].map((code) => languageName(code.split("-")[0]));
  const isOf = ({ speaker, language: named }) => !named && speakers.includes(speaker);
  const press = () => {
    const ids = project.lines.filter(isOf).map(({ line_id: lineId }) => lineId);
    if (!ids.length) return project.editSettings({ language });
    return project.edit([{ op: "set", line_ids: ids, fields: { language } }]);
  };
  const change = { label: t`Choose a voice engine`, press: () => byId(project.view.settings.backend ? "project-open" : "model-chip").click() };
  return showNotice("language", {
    kind: "warning",
    title: speakers.length ? t`${speakers.join(", ")}: these lines look ${own}.` : t`This script looks ${own}.`,
    text: misread.is_known ? t`It is read as ${other}.` : t`It is read as ${other}: this voice engine has no ${own}.`,
    act: misread.is_known ? { label: t`Read as ${own}`, press } : change,
  });
}

const SPOKEN = 3;
const GAP_PX = 12;

/** Shows warnings: a badge on the row, the text in the panel, and a button to the next line. */
export class WarningBadges {
  #parts;
  #doubted = new Set();
  /** The lines that wait for a choice between two versions. @type {Set<string>} */
  #disputed = new Set();
  #accepted = null;
  #shown = "";

  /** @param {Pick<Parts, "project" | "hints" | "lines" | "selection" | "commands" | "show">} parts */
  constructor(parts) {
    this.#parts = parts;
    bus.on("checks.changed", (change) => this.#changed(change));
    bus.on("project.changed", (change) => this.#followTakes(change));
    bus.on("selection.changed", () => this.#showPanel());
    bus.on("project.opened", () => this.#followConflicts());
    bus.on("project.conflict", () => this.#followConflicts());
    bus.on("project.settled", () => this.#followConflicts());
    byId("hints-next").addEventListener("click", () => this.#next());
    byId("take-fine").addEventListener("click", () => this.#accept());
  }

  /** Show the whole text of a line's warnings. */
  open() {
    this.#parts.show("line");
    // Not scrollIntoView, which would scroll the page itself, too.
    const part = byId("hints-part");
    const pane = part.closest("#part-line");
    pane.scrollTop += part.getBoundingClientRect().bottom - pane.getBoundingClientRect().bottom + GAP_PX;
  }

  #changed({ ids }) {
    const { hints, lines, selection } = this.#parts;
    for (const lineId of ids) lines.row(lineId)?.hint(this.messagesOf(lineId));
    this.#showCount();
    const mine = selection.ids.filter((lineId) => ids.has(lineId));
    if (mine.length) this.#showPanel();
    this.#say(mine.filter((lineId) => hints.of(lineId).length));
  }

  #followConflicts() {
    const before = this.#disputed;
    this.#disputed = this.#parts.project.disputed;
    const ids = new Set([...before, ...this.#disputed]);
    if (ids.size) this.#changed({ ids });
  }

  /** Whether it was edited in two places, the warnings about a line, and the issues of its take. */
  messagesOf(lineId) {
    const disputed = this.#disputed.has(lineId) ? [t`Edited in two places.`] : [];
    return [...disputed, ...this.#parts.hints.of(lineId), ...this.#doubtsOf(lineId)];
  }

  #doubtsOf(lineId) {
    const { project } = this.#parts;
    return lineIssues(project.line(lineId), project.view.accepted_takes);
  }

  /** What becomes of the line's stage directions, which needs no check. */
  #notesOf(lineId) {
    return this.#parts.hints.directionsOf(lineId).map(({ note }) => translateServer(note));
  }

  /** Update lines whose take changed or was accepted. */
  #followTakes({ ids }) {
    const { project, lines, selection } = this.#parts;
    const { accepted_takes: accepted } = project.view;
    const all = accepted === this.#accepted ? ids : project.view.order;
    this.#accepted = accepted;
    const fresh = [];
    for (const lineId of all) {
      const is = this.#doubtsOf(lineId).length > 0;
      if (!is && !this.#doubted.has(lineId)) continue;
      if (is && !this.#doubted.has(lineId)) fresh.push(lineId);
      if (is) this.#doubted.add(lineId);
      else this.#doubted.delete(lineId);
      lines.row(lineId)?.hint(this.messagesOf(lineId));
    }
    this.#showCount();
    this.#showPanel();
    this.#say(selection.ids.filter((lineId) => fresh.includes(lineId)));
  }

  /** Accept the take of a line, so that it isn't marked any more. */
  #accept() {
    const { project, selection, commands } = this.#parts;
    const { take } = project.line(selection.current) ?? {};
    if (take) commands.accept(take.take_id, true);
    selection.focus();
  }

  /** Announce the warnings of the current line, but not those of a project that opens. */
  #say(lineIds) {
    const { lines } = this.#parts;
    if (!lineIds.length) return;
    const sentences = lineIds.slice(0, SPOKEN).map((lineId) =>
      t`Line ${lines.row(lineId)?.number.textContent}: ${this.messagesOf(lineId).join(" ")}`);
    announce(sentences.join(" "));
  }

  /** The lines that failed, or have warnings or issues. */
  get toCheck() {
    const { project, hints } = this.#parts;
    return project.lines
      .filter(({ line_id: lineId, state }) =>
        state === "failed" || this.#disputed.has(lineId) || hints.of(lineId).length || this.#doubted.has(lineId))
      .map(({ line_id: lineId }) => lineId);
  }

  #showCount() {
    const all = this.toCheck.length;
    setHidden(byId("hints-next"), all === 0);
    setText(byId("hints-next"), t`${all} to check`);
  }

  #showPanel() {
    const { selection } = this.#parts;
    const [lineId] = selection.ids.length === 1 ? selection.ids : [null];
    const messages = lineId ? [...this.messagesOf(lineId), ...this.#notesOf(lineId)] : [];
    setHidden(byId("hints-part"), messages.length === 0);
    setHidden(byId("take-fine"), !this.#doubted.has(lineId));
    const known = JSON.stringify(messages);
    if (known === this.#shown) return;
    this.#shown = known;
    byId("hints").replaceChildren(...messages.map(item));
  }

  /** Go to the next of them after the current line, wrapping around. */
  #next() {
    const { project, selection } = this.#parts;
    const lines = this.toCheck;
    const { order } = project.view;
    const at = order.indexOf(selection.current);
    const next = lines.find((lineId) => order.indexOf(lineId) > at) ?? lines[0];
    if (!next) return;
    selection.go(next);
    selection.focus();
  }
}

function item(message) {
  const row = document.createElement("li");
  setText(row, message);
  row.dir = "auto";
  return row;
}
