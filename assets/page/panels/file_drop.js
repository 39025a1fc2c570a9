/** Imports: by the button, or dropped on the page; each file goes where it fits. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { askDialog, byId, disclose, setHidden, setText } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { announce, noticeImportedFile, noticeOpenedProject, showError, showNotice, showProgressNotice } from "../core/notices.js";
import { t } from "../core/texts.js";
import { isSoundFile } from "../editor/recordings.js";
import { isVoiceFile } from "./voice_files.js";

/** @import { Parts } from "../core/types" */

const WORDS = {
  project: t`Drop to import as a new project`,
  scene: t`Drop to add here or as a new project`,
  line: t`Drop to add as a recording`,
  file: t`Drop to play in this line`,
  voice: t`Drop to add a voice`,
  engine: t`Drop to add a voice`,
};

export class FileDrop {
  #field = byId("import-file");
  #asks = false;
  #parts;

  /** @param {Pick<Parts, "projects" | "project" | "lines" | "recordings" | "lineImport" | "speakers" | "show">} parts */
  constructor(parts) {
    this.#parts = parts;
    const { project } = parts;
    disclose(byId("export"), byId("export-menu"));
    for (const id of ["import", "start-open"]) byId(id).addEventListener("click", () => this.#choose({ asks: true }));
    byId("project-import").addEventListener("click", () => this.#choose({ asks: false }));
    this.#field.addEventListener("change", () => this.#chosen());
    this.#listenForDrops();
    bus.on("project.shown", () =>
      noticeOpenedProject({ name: project.view.name, notices: project.notices }, (rows) => {
        const { order } = project.view;
        parts.lineImport.select(rows.map((row) => order[row]).filter(Boolean));
      }));
  }

  #listenForDrops() {
    const veil = byId("drop-veil");
    addEventListener("dragover", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault(); // or the browser would open the file instead of the page
      const place = this.#place(event, [...event.dataTransfer.items].some(({ type }) => isSoundFile({ name: "", type })));
      setText(veil.firstElementChild, WORDS[place] ?? "");
      setHidden(veil, place === null);
    });
    addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? setHidden(veil, true));
    addEventListener("drop", (event) => {
      setHidden(veil, true);
      if (!carriesFiles(event)) return;
      event.preventDefault();
      this.#drop(event, [...event.dataTransfer.files]);
    });
  }

  /** Open the file chooser. @param {{asks: boolean}} how whether to ask if they are meant for this project */
  #choose({ asks }) {
    this.#asks = asks;
    this.#field.click();
  }

  async #chosen() {
    const [files, asks] = [[...this.#field.files], this.#asks];
    this.#field.value = ""; // so that the same file can be chosen again
    this.#asks = false;
    await (asks ? this.#ask(files) : this.#bring(files));
  }

  /** What a file would become at this drop target. @returns {"project" | "scene" | "line" | "file" | "voice" | "engine" | null} */
  #place({ target }, sound) {
    const on = (selector) => target instanceof Element && target.closest(selector);
    if (on("dialog")) return null;
    if (on("#model-panel")) return "engine";
    if (!sound) return on("#part-lines") ? "scene" : "project";
    if (on("#cast-column")) return "voice";
    return on('.line[data-kind="audio"]') ? "file" : "line";
  }

  /** Import dropped files: audio into the scene or as a voice, everything else as projects. */
  async #drop(event, files) {
    const { lines, recordings } = this.#parts;
    const sounds = files.filter(isSoundFile);
    const place = this.#place(event, sounds.length > 0);
    if (place === null) return;
    if (place === "engine" || files.some(isVoiceFile)) return bus.emit("voices.brought", files);
    const isScene = this.#place(event, false) === "scene";
    const lineId = lines.lineOf(event.target);
    if (place === "voice") this.#beginVoice(sounds);
    if (place === "file") await recordings.bringAll(sounds, lineId);
    if (place === "line") await recordings.bringAll(sounds, null, lineId ?? undefined);
    const scripts = files.filter((file) => !sounds.includes(file));
    await (isScene ? this.#ask(scripts) : this.#bring(scripts));
  }

  /** A script may be meant for the open project; a project's file is always a new one. */
  async #ask(files) {
    const scripts = files.filter(({ name }) => !/\.zip$/i.test(name));
    await this.#bring(files.filter((file) => !scripts.includes(file)));
    if (!scripts.length) return;
    if (!this.#parts.project.view.order.length) return void (await this.#begin(scripts));
    const choice = await asked(scripts, this.#words());
    if (choice === "here") await this.#parts.lineImport.files(scripts);
    if (choice === "project") await this.#bring(scripts);
  }

  /** The first lines of a project need no question. */
  async #begin(scripts) {
    if (await this.#parts.lineImport.files(scripts)) bus.emit("start.used");
  }

  /** The place where lines would be inserted. @returns {string} */
  #words() {
    const { lineImport, lines } = this.#parts;
    if (lineImport.place === null) return t`at the top`;
    const number = lines.row(lineImport.place)?.number?.textContent;
    return number ? t`after line ${number}` : t`after the selected pause`;
  }

  #beginVoice([first, ...others]) {
    const names = others.map(({ name }) => name).join(", ");
    const text = others.length ? t`Skipped: ${names}. Drop one recording at a time.` : null;
    showNotice("drop", { kind: "warning", title: t`A voice starts with one recording.`, text, dismiss: () => {} });
    this.#parts.speakers.begin(first);
  }

  /** @param {File[]} files each becomes a project; the last one is opened */
  async #bring(files) {
    const brought = [];
    for (const file of files) {
      const over = showProgressNotice(t`Importing ${file.name}…`);
      try {
        const body = api.importProject(file);
        const isShown = await this.#parts.projects.adopt(body);
        const { notices, ...about } = await body;
        brought.push({ name: file.name, notices, isShown });
        if (isShown) this.#parts.lineImport.offerReading(file, about);
        announce(t`${file.name} imported.`);
      } catch (error) {
        showError(t`Couldn’t import ${file.name}`, error);
      }
      over();
    }
    brought.filter(({ isShown }, at) => !isShown || at < brought.length - 1).forEach((one) => noticeImportedFile(one));
  }
}

/** Open the form of the audio export, with the focus on its first field. */
export function openSoundForm() {
  const [button, menu] = [byId("download"), byId("sound-form")];
  if (button.disabled) {
    const why = t`Nothing has been generated yet. Press Play first.`;
    return showError(t`There is no audio to export`, new Error(why));
  }
  if (menu.hidden) button.click();
  return menu.querySelector("a, button, select, input")?.focus();
}

/** @param {File[]} files @param {string} place where they would come in @returns {Promise<string>} "here", "project" or "cancel" */
function asked(files, place) {
  const dialog = byId("bring-confirm");
  const what = files.length === 1 ? files[0].name : formatCount(files.length, "file");
  setText(byId("bring-confirm-title"), t`Where should ${what} go?`);
  setText(byId("bring-confirm-text"), t`Add the lines to this scene, ${place} (one undo removes them), or make a new project of them.`);
  return askDialog(dialog, "cancel");
}

function carriesFiles(event) {
  return Boolean(event.dataTransfer?.types.includes("Files"));
}
