/**
 * Exports: the script in any format, and the scene's audio, which the studio writes while the page shows the
 * progress.
 */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { askDialog, byId, disclose, focusedElement, setHidden, setText } from "../core/dom.js";
import { formatCount, formatDecimal } from "../core/format.js";
import { localStore } from "../core/local_store.js";
import { announce, showDone, showError, showNotice } from "../core/notices.js";
import { t, translateServer } from "../core/texts.js";
import { isMissing, isPending } from "../document/document.js";
import { sectionOf } from "../editor/sections.js";
import { CoverChoice } from "./cover_choice.js";

/** @import { Line, SceneExport } from "../core/types" */

const KEPT = "tableread.sound";
const ZIPS = new Set(["zip", "tracks"]);

/** The export of the scene's audio: the studio writes it, the page shows the progress, the browser downloads it. */
export class SoundExport {
  #project;
  #running = null;
  /** @type {SceneExport[]} */
  #known = [];
  #format = byId("sound-format");
  #loudness = byId("sound-loudness");
  #lufs = byId("sound-lufs");
  #even = byId("sound-even");
  #kbps = byId("sound-kbps");
  #names = byId("sound-names");
  #section = byId("sound-section");
  #captions = byId("sound-captions");

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    disclose(byId("download"), byId("sound-form"));
    this.#recall(localStore.json(KEPT, {}));
    this.#loudness.addEventListener("change", () => this.#showLevel());
    this.#format.addEventListener("change", () => this.#showParts());
    new CoverChoice(project);
    byId("download").addEventListener("click", () => this.#listSections());
    byId("sound-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    byId("sound-cancel").addEventListener("click", () => this.#cancel());
    bus.on("project.opened", () => setText(byId("sound-result"), ""));
    bus.on("engine.changed", ({ exports }) => exports && this.#follow(exports));
  }

  /** Whether the page waits for a file. */
  get busy() {
    return this.#running !== null;
  }

  #recall({ format, loudness, lufs, even, kbps, names, captions }) {
    choose(this.#format, format);
    choose(this.#kbps, kbps);
    choose(this.#names, names);
    choose(this.#loudness, loudness);
    if (Number.isFinite(lufs)) this.#lufs.value = lufs;
    this.#even.checked = even === true;
    this.#captions.checked = captions === true;
    this.#showLevel();
    this.#showParts();
  }

  /** What can be chosen depends on the format. */
  #showParts() {
    const { lossy, covered } = this.#format.selectedOptions[0].dataset;
    setHidden(byId("sound-kbps-part"), lossy === undefined);
    setHidden(byId("sound-names-part"), this.#format.value !== "zip");
    setHidden(byId("cover-part"), covered === undefined);
  }

  /** The whole scene or one of its sections. */
  #listSections() {
    const headings = this.#project.lines.filter(({ unspoken }) => unspoken === "heading");
    const chosen = this.#section.value;
    const options = headings.map(({ line_id: lineId, text }) => new Option(text, lineId));
    this.#section.replaceChildren(new Option(t`The whole scene`, ""), ...options);
    choose(this.#section, chosen);
    setHidden(byId("sound-section-part"), !headings.length);
  }

  #showLevel() {
    const other = this.#loudness.value === "other";
    this.#lufs.disabled = !other; // a hidden field must not block the form
    setHidden(byId("sound-lufs-part"), !other);
  }

  /** The chosen options, stored for the next time. */
  #wish() {
    const lufs = this.#lufs.valueAsNumber;
    const chosen = { format: this.#format.value, loudness: this.#loudness.value, even: this.#even.checked };
    const [kbps, names] = [this.#kbps.value, this.#names.value];
    const captions = this.#captions.checked;
    localStore.set(KEPT, JSON.stringify({ ...chosen, lufs, kbps, names, captions }));
    const loudness = chosen.loudness === "other" ? lufs : chosen.loudness;
    const more = {};
    if (kbps && "lossy" in this.#format.selectedOptions[0].dataset) more.kbps = Number(kbps);
    if (chosen.format === "zip") more.names = names;
    if (ZIPS.has(chosen.format)) Object.assign(more, { podcast: true, captions });
    if (this.#section.value) more.section = this.#section.value;
    return { format: chosen.format, loudness, even_voices: chosen.even, ...more };
  }

  /** The lines that the file will have. */
  get #lines() {
    const { view, lines } = this.#project;
    const chosen = this.#section.value && new Set(sectionOf(view.order, view.lines, this.#section.value));
    return chosen ? lines.filter(({ line_id: lineId }) => chosen.has(lineId)) : lines;
  }

  /** Ask before anything is written what isn't as it should be. @returns {Promise<"make" | "as-is" | "cancel">} */
  async #ask() {
    const { sentences, canMake, isSilent } = findIncomplete(this.#lines);
    if (isSilent && !canMake) {
      const why = sentences.join(" ") || t`There are no lines to speak.`;
      showError(t`There is no audio to export`, new Error(why));
      return "cancel";
    }
    if (!sentences.length) return "as-is";
    byId("export-confirm-lines").replaceChildren(...sentences.map(listItem));
    setHidden(byId("export-as-is"), isSilent);
    setHidden(byId("export-make"), !canMake);
    const answer = askDialog(byId("export-confirm"), "cancel");
    byId(canMake ? "export-make" : "export-as-is").focus();
    return /** @type {Promise<"make" | "as-is" | "cancel">} */ (answer);
  }

  /** Generate what is missing, and ask about what failed. */
  async #make(run) {
    run.isMaking = true;
    this.#show(0, t`Generating…`);
    await this.#project.render(this.#section.value ? this.#lines.filter(isMissing).map(({ line_id: lineId }) => lineId) : null);
    while (this.#project.rendering && this.#waits(run)) await nextJob();
    run.isMaking = false;
    return this.#waits(run) ? this.#ask() : "cancel";
  }

  /** Whether the page still waits for a file, in the same project. */
  #waits(run) {
    return run === this.#running && run.projectId === this.#project.id;
  }

  async #save() {
    if (this.#running) return;
    let answer = await this.#ask();
    if (answer === "cancel" || this.#running) return;
    const hasCaptions = this.#captions.checked && !ZIPS.has(this.#format.value);
    const name = this.#section.value ? this.#section.selectedOptions[0].text : this.#project.view.name;
    const run = { projectId: this.#project.id, exportId: null, isMaking: false, stopped: false, hasCaptions, name };
    this.#running = run;
    try {
      while (answer === "make") answer = await this.#make(run);
      if (run !== this.#running) return;
      if (answer === "cancel") return this.#hide("");
      this.#show(0, t`Exporting…`);
      await this.#project.flush();
      const begun = await api.startSoundExport(run.projectId, this.#wish());
      run.exportId = begun.export_id;
      if (run.stopped) return await this.#stop(run);
      // Its end may have been reported before this answer came.
      this.#take(run, this.#known.find(({ export_id }) => export_id === run.exportId) ?? begun);
    } catch (error) {
      this.#failed(run, error);
    }
  }

  /** @param {SceneExport[]} exports all that the studio has */
  async #follow(exports) {
    this.#known = exports;
    const run = this.#running;
    if (!run?.exportId) return;
    try {
      const found = exports.find(({ export_id }) => export_id === run.exportId);
      this.#take(run, found ?? (await api.readSoundExport(run.projectId, run.exportId)));
    } catch (error) {
      this.#failed(run, error);
    }
  }

  /** @param {SceneExport} known how the export is now */
  #take(run, known) {
    if (run !== this.#running) return; // the page isn't waiting for it any more
    if (known.state === "running") byId("sound-share").value = known.share;
    else this.#ended(run, known);
  }

  #failed(run, error) {
    if (run !== this.#running) return;
    this.#hide(error.message); // on a phone the form covers the notice
    showError(t`Couldn’t export the audio`, error);
  }

  #ended(run, { state, message, measured }) {
    if (state === "cancelled") return this.#hide(t`Stopped. Nothing was exported.`);
    if (state === "failed") throw new Error(translateServer(message));
    download(api.soundExportUrl(run.projectId, run.exportId), "");
    if (run.hasCaptions) this.#saveCaptions(run);
    this.#hide([t`Saved.`, level(measured), ...measured.remarks.map(translateServer)].join(" "));
    if (byId("sound-form").hidden) showDone(t`Audio exported. ${level(measured)}`);
  }

  /** The browser would refuse a second download by a link; what the page fetches itself is allowed. */
  async #saveCaptions({ projectId, exportId, name }) {
    try {
      saveBlob(await api.readSoundCaptions(projectId, exportId), `${name}.srt`);
    } catch (error) {
      showError(t`Couldn’t save the captions`, error);
    }
  }

  async #cancel() {
    const run = this.#running;
    if (!run || run.stopped) return;
    run.stopped = true;
    this.#hide(t`Stopped. Nothing was exported.`);
    announce(t`Stopped. Nothing was exported.`);
    if (run.exportId) await this.#stop(run);
    else if (run.isMaking) await this.#project.cancel();
  }

  async #stop(run) {
    try {
      await api.stopSoundExport(run.projectId, run.exportId);
    } catch (error) {
      // One that has ended is dropped, too.
      if (error.kind !== "NotFound") showError(t`Couldn’t stop the export`, error);
    }
  }

  #show(share, text) {
    byId("sound-share").value = share;
    this.#swap(true);
    setText(byId("sound-result"), text);
  }

  #hide(text) {
    this.#running = null;
    this.#swap(false);
    setText(byId("sound-result"), text);
  }

  /** Either *Save* or *Cancel* is shown, and takes the focus of the other. */
  #swap(running) {
    const [save, cancel] = [byId("sound-save"), byId("sound-cancel")];
    const held = focusedElement() === (running ? save : cancel);
    setHidden(save, running);
    setHidden(cancel, !running);
    setHidden(byId("sound-share"), !running);
    byId("download").dataset.busy = String(running);
    if (held) (running ? cancel : save).focus();
  }
}

function listItem(text) {
  const row = document.createElement("li");
  setText(row, text);
  return row;
}

function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}

/** @returns {string} the file's description */
function level({ loudness_lufs: lufs, true_peak_db: peak }) {
  const loudness = lufs === null ? t`Too quiet for LUFS` : t`${minus(lufs)} LUFS`;
  return t`${loudness}, true peak ${minus(peak)} dB.`;
}

function minus(number) {
  return formatDecimal(number, 1).replace("-", "−");
}

/** The links that download the script, with a notice of what a format can't hold. */
export class Exports {
  #project;
  #sound;

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    this.#sound = new SoundExport(project);
    bus.on("project.shown", () => this.#link());
    for (const link of exportLinks()) {
      link.addEventListener("click", (event) => this.#press(event, link));
    }
  }

  /** Whether a file is being made. */
  get busy() {
    return this.#sound.busy;
  }

  /** Set the links to the open project. */
  #link() {
    for (const link of exportLinks()) {
      const slim = "slim" in link.dataset ? "&deleted=false" : "";
      link.href = api.exportUrl(this.#project.id, link.dataset.format) + slim;
    }
    showNotice("export", {});
  }

  #press(event, link) {
    const { format } = link.dataset;
    link.closest(".menu")?.querySelector("[aria-expanded=true]")?.click();
    event.preventDefault();
    if (format === "tableread") return this.#hand(link, t`The project file`);
    return this.#save(format, link.textContent.split(",")[0].trim());
  }

  /** Large files are downloaded by the browser itself, once the studio has every edit. */
  async #hand({ href }, what) {
    await this.#project.flush();
    showDone(t`Preparing ${what}… The download starts when it is ready.`);
    download(href, "");
  }

  /** A script is small, so the page fetches it itself and can show an error. */
  async #save(format, label) {
    try {
      await this.#project.flush();
      const { blob, leftOut } = await api.exportScript(this.#project.id, format);
      saveBlob(blob, `${this.#project.view.name || t`Untitled`}.${format}`);
      const title = t`Exported as ${label}, with some things left out.`;
      showNotice("export", { kind: "warning", title, text: leftOut || null });
      if (leftOut) announce(`${title} ${leftOut}`);
      else showDone(t`Exported as ${label}.`);
    } catch (error) {
      showError(t`Couldn’t export ${label}`, error);
    }
  }
}

/**
 * What stands between the lines of an export and the whole scene.
 * @param {Line[]} lines @returns {{sentences: string[], canMake: boolean, isSilent: boolean}} what to say, whether generating
 *   would change any of it, and whether nothing would be heard
 */
function findIncomplete(lines) {
  const audible = lines.filter(({ kind }) => kind !== "silence");
  const isEmpty = ({ kind, text, state }) => kind === "speech" && !/[\p{L}\p{N}]/u.test(text) && state !== "ready";
  const written = audible.filter((line) => !isEmpty(line));
  const failed = written.filter(({ state }) => state === "failed");
  const old = written.filter(({ take, state }) => take && state !== "ready" && state !== "failed");
  const sentences = [
    countedSentence(written.filter(({ take, state }) => !take && state !== "failed"), t`has no audio and is left out`, t`have no audio and are left out`),
    countedSentence(failed, t`failed: it is left out, or plays as before`, t`failed: they are left out, or play as before`),
    countedSentence(old.filter((line) => !line.locked), t`plays as before its last change`, t`play as before their last change`),
    countedSentence(old.filter((line) => line.locked), t`is locked and plays as before its last change: unlock it first`, t`are locked and play as before their last change: unlock them first`),
    countedSentence(audible.filter(isEmpty), t`is empty: write what it says, or delete it`, t`are empty: write what they say, or delete them`),
  ];
  const canMake = written.some((line) => isMissing(line) || isPending(line));
  return { sentences: sentences.filter(Boolean), canMake, isSilent: audible.every(({ take }) => !take) };
}

/** @returns {Promise<void>} when the render goes on or ends, or another project is opened */
function nextJob() {
  return new Promise((go) => {
    const ends = /** @type {const} */ (["project.job", "project.opened"]).map((name) => bus.on(name, () => {
      ends.forEach((end) => end());
      go();
    }));
  });
}

/** @returns {string} nothing of no lines */
function countedSentence(lines, one, many) {
  return lines.length ? t`${formatCount(lines.length, "line")} ${lines.length === 1 ? one : many}.` : "";
}

function saveBlob(blob, name) {
  const address = URL.createObjectURL(blob);
  download(address, name);
  // The browser has started the download by the time the page is idle again.
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

function download(href, name) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}

/** @returns {NodeListOf<HTMLAnchorElement>} */
function exportLinks() {
  return document.querySelectorAll("a[data-format]");
}
