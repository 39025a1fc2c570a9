/** A scene being read: joins the script, the job made from it, the rows and the player. */
import * as api from "./api.js";
import { byId } from "./dom.js";
import { fold } from "./format.js";
import { Job } from "./job.js";
import { lineStatus } from "./lines.js";
import { announce, notice, refused } from "./notices.js";

const JOB_KEY = "tableread.job";
const BLANK = { state: "waiting", samples: 0, message: "" };

export class Reading {
  #parts;
  #job = null;
  #parsed = { text: null, lines: [], speakers: [] };
  #jobLines = [];
  #segmentsOf = new Map();
  #rowOf = new Map();
  #lineOfRow = new Map();
  #starting = false;

  /** @param {object} parts editor, player, lines, timeline, transport, speakers, and `show` for a view */
  constructor(parts) {
    this.#parts = parts;
    const { editor, player, lines, timeline, transport } = parts;
    editor.addEventListener("parsed", ({ detail }) => this.#take(detail));
    player.addEventListener("change", () => this.#showPlayer());
    player.addEventListener("end", () => this.#showClock());
    lines.addEventListener("play", ({ detail }) => this.#playLine(detail));
    lines.addEventListener("place", ({ detail }) => this.#placeAt(detail));
    lines.addEventListener("edit", ({ detail }) => this.#edit(detail));
    timeline.addEventListener("seek", ({ detail }) => this.#seek(detail));
    transport.addEventListener("read", () => this.read());
    transport.addEventListener("cancel", () => this.#cancel());
    transport.addEventListener("toggle", () => this.toggle());
  }

  /** Read the scene: a job from the script as it stands, heard from its beginning. */
  async read({ fromRow = null } = {}) {
    if (this.#starting) return;
    const { editor, player, speakers, transport } = this.#parts;
    this.#starting = true;
    player.unlock();
    transport.begin();
    editor.hurry();
    try {
      const text = editor.text;
      if (this.#job?.running) await this.#job.cancel();
      await this.#attach(new Job(await api.startJob(text, speakers.voices), text));
      localStorage.setItem(JOB_KEY, JSON.stringify({ id: this.#job.id, text }));
      this.#begin(fromRow);
    } catch (error) {
      transport.refused();
      this.#refuse(error);
    } finally {
      this.#starting = false;
    }
  }

  /** Play or pause; without a job, read the scene. */
  toggle() {
    const { player } = this.#parts;
    if (!this.#job) return this.read();
    return player.playing ? player.stop() : player.play();
  }

  /** Move the play-head by lines of the job. @param {number} by -1 or 1 */
  step(by) {
    if (!this.#job) return;
    const here = this.#job.segments[this.#parts.player.segment_idx].line_idx;
    const first = this.#segmentsOf.get(here + by)?.[0];
    if (first) this.#seek(this.#parts.player.layout.starts[first.segment_idx]);
  }

  /** Come back to the job this browser was reading before the page was loaded again. */
  async reattach() {
    const kept = JSON.parse(localStorage.getItem(JOB_KEY) ?? "null");
    if (!kept) return;
    try {
      await this.#attach(new Job(await api.job(kept.id), kept.text));
    } catch (error) {
      localStorage.removeItem(JOB_KEY);
      if (error.status !== 404) refused("The last reading can't be shown", error);
    }
  }

  async #attach(job) {
    const { editor, player } = this.#parts;
    this.#job?.leave();
    this.#job = job;
    this.#segmentsOf = Map.groupBy(job.segments, (segment) => segment.line_idx);
    await this.#learnLines(job.text);
    player.load(job);
    job.addEventListener("change", ({ detail }) => this.#showChange(detail));
    job.addEventListener("settled", () => this.#settled());
    job.addEventListener("lost", () => this.#lost());
    job.follow();
    if (editor.text === job.text) editor.note(job.notices);
    this.#match();
    this.#showTimeline();
  }

  #begin(fromRow) {
    const { player, transport, show } = this.#parts;
    announce("Reading the scene.");
    show("lines");
    transport.focusPlay();
    const first = fromRow === null ? 0 : this.#firstSegment(fromRow) ?? 0;
    if (first) this.#focus(first);
    return player.playFrom(first);
  }

  #refuse(error) {
    if (error.kind !== "ScriptError") return refused("The scene can't be read", error);
    this.#parts.show("script");
    this.#parts.editor.refuse(error);
  }

  async #cancel() {
    try {
      await this.#job?.cancel();
    } catch (error) {
      refused("It can't be cancelled", error);
    }
  }

  /** Lines of the text the job was made from; needed to tell which rows still are its lines. */
  async #learnLines(text) {
    const same = this.#parsed.text === text;
    this.#jobLines = same ? this.#parsed.lines : (await api.parse(text)).lines;
  }

  #take(parsed) {
    this.#parsed = parsed;
    this.#parts.lines.show(parsed.lines, this.#colours());
    this.#match();
    this.#showTimeline();
  }

  #colours() {
    const colours = new Map(this.#parsed.speakers.map(({ name, colour }) => [fold(name), colour]));
    return { get: (name) => colours.get(fold(name ?? "")) };
  }

  /** Pair rows with the job's lines: same words by the same speaker, in order of appearance. */
  #match() {
    const waiting = Map.groupBy(this.#jobLines.keys(), (idx) => lineKey(this.#jobLines[idx]));
    this.#rowOf.clear();
    this.#lineOfRow.clear();
    this.#parsed.lines.forEach((line, row) => {
      const lineIdx = waiting.get(lineKey(line))?.shift();
      if (lineIdx === undefined) return this.#parts.lines.status(row, BLANK);
      this.#rowOf.set(lineIdx, row);
      this.#lineOfRow.set(row, lineIdx);
      this.#showLine(lineIdx);
    });
    this.#showJob();
    this.#showPlayer();
  }

  #showJob() {
    if (!this.#job) return;
    const changed = this.#parsed.lines.length - this.#lineOfRow.size;
    this.#parts.transport.showJob(this.#job, changed);
  }

  #showChange(segmentIdxs) {
    const changed = [...segmentIdxs].map((idx) => this.#job.segments[idx].line_idx);
    new Set(changed).forEach((lineIdx) => this.#showLine(lineIdx));
    this.#showJob();
    this.#showTimeline();
  }

  #showLine(lineIdx) {
    const row = this.#rowOf.get(lineIdx);
    const segments = this.#segmentsOf.get(lineIdx);
    if (row === undefined) return;
    this.#parts.lines.status(row, segments ? lineStatus(segments) : BLANK);
  }

  #showTimeline() {
    const { player, timeline } = this.#parts;
    if (!this.#job) return;
    player.refresh();
    timeline.show(this.#job.segments, player.layout, this.#colours());
    this.#showClock();
  }

  #showPlayer() {
    const { player, transport, lines } = this.#parts;
    const segment = this.#job?.segments[player.segment_idx];
    transport.showPlayer(player, segment);
    const row = this.#rowOf.get(segment?.line_idx) ?? null;
    lines.follow(player.playing || player.place ? row : null);
    lines.sounding(player.playing ? row : null);
    this.#showClock();
  }

  #showClock() {
    const { player, transport, timeline } = this.#parts;
    transport.showClock(player);
    timeline.move(player.place);
    if (player.playing && !this.ticking) this.#tick();
  }

  #tick() {
    this.ticking = true;
    requestAnimationFrame(() => {
      this.ticking = false;
      this.#showClock();
    });
  }

  #settled() {
    this.#showJob();
    this.#showTimeline();
    announce(byId("progress").textContent);
  }

  #lost() {
    localStorage.removeItem(JOB_KEY);
    this.#parts.player.stop();
    const text = "The studio was started again and this reading ended. Read the scene once more.";
    notice("lost", { kind: "warning", title: "The reading was cut off.", text });
  }

  #playLine(row) {
    const { player } = this.#parts;
    const segments = this.#segmentsOf.get(this.#lineOfRow.get(row));
    if (!segments || segments.some(({ state }) => state === "cancelled")) {
      return this.read({ fromRow: row });
    }
    const [first, last] = [segments[0].segment_idx, segments.at(-1).segment_idx];
    const sounding = player.playing && player.segment_idx >= first && player.segment_idx <= last;
    if (sounding) return player.stop();
    this.#focus(first);
    return player.playFrom(first, last);
  }

  #placeAt(row) {
    const first = this.#firstSegment(row);
    if (first !== undefined) this.#seek(this.#parts.player.layout.starts[first]);
  }

  #firstSegment(row) {
    return this.#segmentsOf.get(this.#lineOfRow.get(row))?.[0].segment_idx;
  }

  #edit(row) {
    this.#parts.show("script");
    this.#parts.editor.reveal(this.#parsed.lines[row].line_number);
  }

  async #seek(place) {
    const { player } = this.#parts;
    await player.seek(place);
    this.#focus(player.segment_idx);
    this.#showClock();
  }

  /** Tell the studio what is listened to, so that it is made first. */
  #focus(segmentIdx) {
    if (!this.#job.running || this.#job.audible(segmentIdx)) return;
    api.focus(this.#job.id, segmentIdx).catch((error) => refused("The order stays", error));
  }
}

function lineKey({ kind, speaker, text, duration_s: seconds, path }) {
  return JSON.stringify([kind, speaker && fold(speaker), text, seconds, path]);
}
