/**
 * Playback: connects the project, its rows, the player and the controls, and scrolls with the playing line.
 */
import { bus } from "../core/bus.js";
import { afterPaint, askDialog, byId, setHidden, setText } from "../core/dom.js";
import { formatCount, formatLeft } from "../core/format.js";
import { announce, showError, showNotice } from "../core/notices.js";
import { t } from "../core/texts.js";
import { characterOf, isMissing, isPending, lineIssues, RATE_HZ } from "../document/document.js";
import { sectionOf } from "../editor/sections.js";
import { formatSpace } from "./gap_grip.js";
import { spaceEdit } from "./gaps.js";
import { isAudible } from "./playlist.js";

/** @import { Parts } from "../core/types" */

const SCROLL_KEYS = new Set(["PageUp", "PageDown", "Home", "End", "ArrowUp", "ArrowDown"]);

/** Keeps the playing line in view, unless the user is at another place of the dialog. */
export class AutoScroll {
  #list = byId("lines");
  #button = byId("back-to-playing");
  #lines;
  #playingLine = null;
  #leftAt = -Infinity;

  /** @param {import("../editor/line_list.js").LineList} lines */
  constructor(lines) {
    /** How long after a manual scroll the list isn't scrolled automatically. */
    this.rest_ms = 8000;
    this.#lines = lines;
    const leave = () => this.#leave();
    this.#list.addEventListener("wheel", leave, { passive: true });
    this.#list.addEventListener("touchmove", leave, { passive: true });
    // A press outside of all rows is on the scroll bar.
    this.#list.addEventListener("pointerdown", ({ target }) => target === this.#list && leave());
    this.#list.addEventListener("keydown", ({ key }) => SCROLL_KEYS.has(key) && leave());
    for (const name of ["scroll", "focusin", "focusout"]) this.#list.addEventListener(name, () => this.#look());
    this.#button.addEventListener("click", () => this.#goBack());
  }

  /** Whether the list may be scrolled: the user isn't typing in it, and hasn't just scrolled it. */
  get free() {
    const writes = document.activeElement?.closest("#lines .line-text, #lines .line-seconds");
    return !writes && performance.now() - this.#leftAt > this.rest_ms;
  }

  /** The playing line was chosen by the user, so follow it again. */
  resume() {
    this.#leftAt = -Infinity;
  }

  /** @param {string | null} lineId the line that plays, null when none does */
  hear(lineId) {
    this.#playingLine = lineId;
    this.#look();
  }

  #leave() {
    this.#leftAt = performance.now();
    this.#lines.letGo();
    this.#look();
  }

  #goBack() {
    const lineId = this.#playingLine;
    this.resume();
    this.#lines.row(lineId)?.root.focus({ preventScroll: true });
    this.#lines.reveal(lineId);
    this.#look();
  }

  /** Offer a button to the playing line while it is out of view and isn't followed. */
  #look = afterPaint(() =>
    setHidden(this.#button, this.#playingLine === null || this.free || this.#lines.sees(this.#playingLine)));
}

const MUTE = t`The browser has no audio output for this page. Connect speakers or headphones, or allow sound for this page.`;

const COUNT_MS = 1000;

/** How many lines are rendered again without a question. */
const ASKED_ABOVE = 20;

/** Starts and stops renders and the player, and shows their progress on rows, timeline and controls. */
export class PlaybackController {
  #parts;
  #ticking = false;
  #wasRendering = false;
  #countsDown = false;

  /** @param {Pick<Parts, "project" | "player" | "lines" | "selection" | "timeline" | "transport" | "engineChoice" | "spokenWords" | "peaks">} parts */
  constructor(parts) {
    this.#parts = parts;
    this.autoScroll = new AutoScroll(parts.lines);
    bus.on("project.changed", () => this.show());
    bus.on("project.shown", () => this.#load());
    bus.on("project.job", () => this.#showJob());
    bus.on("player.changed", () => this.#showPlayer());
    bus.on("player.ended", () => this.#showClock());
    bus.on("player.muted", () => showNotice("sound", { kind: "warning", title: t`No audio output.`, text: MUTE }));
    bus.on("engine.wanted", () => parts.player.unlock());
    bus.on("engine.arrived", () => this.readWithNewEngine());
    bus.on("timeline.seek", (place) => this.#seek(place));
    bus.on("timeline.space", (change) => this.#setSpace(change));
    bus.on("transport.generate", () => this.make());
    bus.on("transport.stop", () => this.stop());
    bus.on("transport.toggle", () => this.toggle());
  }

  /** Render missing and outdated lines, and play from the start. */
  async read() {
    const { player, project } = this.#parts;
    player.unlock();
    await project.flush();
    const [first] = project.view.order;
    if (first) await this.#playLines(first, { make: true });
  }

  /** Read the scene from the start with an engine that was asked for just for that: without a question. */
  async readWithNewEngine() {
    await this.#parts.project.flush();
    const [first] = this.#parts.project.view.order;
    if (first) await this.#playLines(first, { make: true, isAgreed: true });
  }

  /** Render missing and outdated lines without playback. */
  async make() {
    const { project, player, engineChoice } = this.#parts;
    if (!(await engineChoice.agree())) return;
    await this.#try(() => project.render(null, { listenFrom: player.line_id }));
  }

  /** Play or pause; lines missing from the play-head on are rendered. */
  toggle() {
    const { player } = this.#parts;
    if (player.playing) return player.stop();
    return this.playOn(player.line_id, { keepPlace: true });
  }

  /** Play one line, rendering it if it is missing; or pause it. */
  playLine(lineId) {
    const { player, project } = this.#parts;
    if (!project.line(lineId)) return undefined;
    if (project.line(lineId).unspoken === "heading") return this.playSection(lineId);
    if (player.playing && player.line_id === lineId) return player.stop();
    return this.#playLines(lineId, { until: lineId, make: isMissing(project.line(lineId)) });
  }

  /** Play a section, rendering what is missing in it; or pause. @param {string} lineId of its heading */
  playSection(lineId) {
    const { player, project } = this.#parts;
    const ids = sectionOf(project.view.order, project.view.lines, lineId);
    if (player.playing && ids.includes(player.line_id)) return player.stop();
    const missing = idsOf(ids.map((id) => project.line(id)).filter(isMissing));
    return this.#playLines(lineId, { until: ids.at(-1), make: missing.length > 0, lineIds: missing });
  }

  /** Play from a line to the end. */
  playOn(lineId, { keepPlace = false } = {}) {
    const { project } = this.#parts;
    if (!lineId) return undefined;
    const { order } = project.view;
    const rest = order.slice(order.indexOf(lineId)).map((id) => project.line(id));
    return this.#playLines(lineId, { make: rest.some(isMissing), lineIds: idsOf(rest.filter(isMissing)), keepPlace });
  }

  /** Render another take of lines, with a new seed; a single line is played. @param {string[]} lineIds */
  async again(lineIds) {
    const { project, player } = this.#parts;
    const speech = lineIds.filter((id) => project.line(id)?.kind === "speech" && !project.line(id).locked);
    if (!speech.length) return announce(t`Nothing here can be regenerated: locked or not speech.`);
    if (speech.length > ASKED_ABOVE && !(await isMeant(speech.length))) return undefined;
    const single = speech.length === 1 ? speech[0] : null;
    player.stop();
    if (single) player.unlock();
    const begun = await this.#try(() => project.render(speech, { again: true, listenFrom: speech[0] }));
    if (begun && single) await player.playFrom(single, single);
    return undefined;
  }

  async cancel() {
    await this.#try(() => this.#parts.project.cancel());
  }

  /** Stop what is made and what is played; the play-head stays. */
  async stop() {
    const { player, project } = this.#parts;
    player.stop();
    if (project.rendering) await this.cancel();
  }

  /** Move the play-head by lines. @param {number} by -1 or 1 */
  step(by) {
    const { player } = this.#parts;
    const next = player.playlist.lines[player.playlist.indexOf(player.line_id) + by];
    if (next) this.placeAt(next.line_id);
  }

  /** Seconds between the line before and this one. @param {string} lineId */
  gapBefore(lineId) {
    return this.#parts.player.playlist.gapBefore(lineId) / RATE_HZ;
  }

  placeAt(lineId) {
    return this.#seek(this.#parts.player.playlist.startOf(lineId));
  }

  async #playLines(lineId, { until = null, make = false, lineIds = null, keepPlace = false, isAgreed = false }) {
    const { player, project, transport, engineChoice } = this.#parts;
    player.unlock();
    if (make && !until && !isAgreed && !(await engineChoice.agree())) return;
    this.autoScroll.resume();
    if (!keepPlace) player.stop();
    if (make) {
      transport.begin();
      const wanted = lineIds ?? (until ? [until] : null);
      if (!(await this.#try(() => project.render(wanted, { listenFrom: lineId })))) return;
      announce(until ? t`Generating the line.` : t`Generating the scene.`);
    }
    if (keepPlace) return player.play();
    if (!make) this.#focus(lineId);
    await player.playFrom(lineId, until);
  }

  /** @returns {Promise<boolean>} whether it went well */
  async #try(act) {
    try {
      await act();
      return true;
    } catch (error) {
      showError(t`Couldn’t generate`, error);
      return false;
    } finally {
      this.#showJob();
    }
  }

  async #seek(place) {
    const { player } = this.#parts;
    this.autoScroll.resume();
    await player.seek(place);
    this.#focus(player.line_id);
    this.#showClock();
  }

  /** One edit, so that one undo takes it back. */
  #setSpace({ space, seconds, group = null }) {
    this.#parts.project.edit([spaceEdit(space, seconds, space.from / RATE_HZ)], { group });
    announce(t`${space.pause ? t`Pause` : t`Gap`} before ${space.line.speaker ?? t`the recording`}: ${formatSpace(seconds)}`);
  }

  /** Send the playing line to the studio, so that it is rendered first. */
  #focus(lineId) {
    const { project } = this.#parts;
    const line = project.line(lineId);
    if (!line || !project.rendering || isAudible(line)) return;
    project.focus(lineId).catch((error) => showError(t`Couldn’t change the order`, error));
  }

  /** Show another project: its audio and its waveforms. */
  #load() {
    const { project, player, timeline, spokenWords, peaks } = this.#parts;
    player.load(project.id);
    spokenWords.load(project.id);
    peaks.open(project.id);
    timeline.restart();
    this.show();
  }

  /** Update the playlist and the timeline from the project. */
  show() {
    const { project, player, timeline, lines } = this.#parts;
    player.levelOf = ({ speaker }) => characterOf(project.view, speaker).level_db;
    player.panOf = findPans(project);
    const gapOf = ({ speaker }) => characterOf(project.view, speaker).gap_s ?? null;
    player.refresh(project.lines, project.view.settings, gapOf);
    const { accepted_takes: accepted } = project.view;
    timeline.show(player.playlist, {
      colour: (speaker) => lines.colour(speaker),
      isDoubtful: (line) => lineIssues(line, accepted).length > 0,
    });
    this.#showJob();
    this.#showClock();
  }

  #showJob() {
    const { project, transport } = this.#parts;
    const summary = progress(project);
    transport.showJob(project, summary);
    if (this.#wasRendering && !project.rendering) announce(summary.text);
    this.#wasRendering = project.rendering;
    this.#countDown();
  }

  /** Between two messages of the studio the page itself counts the time that is left. */
  #countDown() {
    if (this.#countsDown || this.#parts.project.remaining_s === null) return;
    this.#countsDown = true;
    setTimeout(() => {
      this.#countsDown = false;
      this.#showJob();
    }, COUNT_MS);
  }

  #showPlayer() {
    const { player, project, transport, lines } = this.#parts;
    if (player.playing) showNotice("sound");
    transport.showPlayer(player, project.line(player.line_id));
    const sounding = player.playing ? player.line_id : null;
    const reveal = player.playing && this.autoScroll.free;
    lines.follow(player.playing || player.place ? player.line_id : null, { reveal });
    lines.sounding(sounding);
    this.autoScroll.hear(sounding);
    this.#showClock();
  }

  #showClock() {
    const { player, transport, timeline, spokenWords } = this.#parts;
    transport.showClock(player);
    spokenWords.show();
    timeline.move(player.place);
    if (!player.playing || this.#ticking) return;
    this.#ticking = true;
    requestAnimationFrame(() => {
      this.#ticking = false;
      this.#showClock();
    });
  }
}

/** Ask whether so many lines are to be rendered again. @returns {Promise<boolean>} */
async function isMeant(lines) {
  const dialog = byId("again-confirm");
  setText(byId("again-confirm-title"), t`Regenerate ${formatCount(lines, "line")}?`);
  return (await askDialog(dialog, "keep")) === "make";
}

function idsOf(lines) {
  return lines.map(({ line_id: lineId }) => lineId);
}

/** Where each line is heard; null for all lines of a scene in which none is panned, as in its file. */
function findPans({ view, lines }) {
  const panOf = ({ speaker }) => characterOf(view, speaker).pan;
  const isPanned = Object.values(view.characters).some(({ pan }) => pan) && lines.some(panOf);
  return isPanned ? panOf : () => null;
}

/** A summary of the render. @returns {{text: string, share: number}} */
function progress(project) {
  const spoken = project.lines.filter(({ kind }) => kind !== "silence");
  const ready = spoken.filter(({ state }) => state === "ready").length;
  const failed = spoken.filter(({ state }) => state === "failed").length;
  const pending = spoken.filter(isPending).length;
  const share = spoken.length ? ready / spoken.length : 0;
  const failures = failed ? t`, ${failed} failed` : "";
  if (!spoken.length) return { text: "", share };
  const left = project.remaining_s;
  if (left !== null) return { text: t`${ready} of ${formatCount(spoken.length, "line")}, ${formatLeft(left)}${failures}`, share };
  if (project.rendering) return { text: t`${ready} of ${spoken.length} ready, ${pending} to go${failures}`, share };
  if (ready === spoken.length) return { text: t`All ${spoken.length} ready`, share };
  const missing = spoken.filter(isMissing).length - failed;
  return { text: `${missing ? t`${formatCount(missing, "line")} to generate` : t`${ready} ready`}${failures}`, share };
}
