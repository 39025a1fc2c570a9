/** Plays the dialog while it is rendered, waiting for lines that aren't ready yet. */
import { bus } from "../core/bus.js";
import { RATE_HZ } from "../document/document.js";
import { amplify, AudioClock } from "./audio_clock.js";
import { isAudible, isComing, Playlist } from "./playlist.js";
import { SoundCache } from "./sound_cache.js";
import { TimeStretch } from "./time_stretch.js";

/** @import { Line } from "../core/types" */

const AHEAD_S = 2.5;
const PIECE_SAMPLES = RATE_HZ / 2;
const PUMP_MS = 100;
const PATIENCE_MS = 3000;

/** Emits the `player.*` events. */
export class Player {
  #clock = new AudioClock();
  #sounds = new SoundCache(null, () => undefined);
  #stretch = new TimeStretch(1);
  /** What is scheduled next; `pcm` is the line's audio so far, null at its start. */
  #cursor = { lineId: null, offset: 0, pcm: null };
  #until = null;
  #timer = null;
  #rest = { lineId: null, offset: 0, pcm: null };
  #pressedAt = null;

  constructor() {
    this.playing = false;
    this.waiting = false;
    this.loop = false;
    this.first_sound_ms = null;
    this.playlist = new Playlist();
    /** The level of a line's character in dB. @type {(line: Line) => number} */
    this.levelOf = () => 0;
    /** Where a line's character is between left, -1, and right, 1; null in a mono scene. @type {(line: Line) => number | null} */
    this.panOf = () => null;
  }

  /** The line at the play-head. @returns {string | null} */
  get line_id() {
    return this.#rest.lineId;
  }

  /** The play-head's position in samples of the timeline. */
  get place() {
    const { lineId, offset } = this.#head();
    const index = this.playlist.indexOf(lineId);
    return index < 0 ? 0 : this.playlist.starts[index] + Math.min(offset, this.playlist.lengths[index]);
  }

  get clock_s() {
    return this.place / RATE_HZ;
  }

  get waits() {
    return this.#clock.waits;
  }

  get laid() {
    return this.#clock.laid;
  }

  get output() {
    return this.#clock.output;
  }

  get rate() {
    return this.#stretch.rate;
  }

  set volume(volume) {
    this.#clock.volume = volume;
  }

  /** To be called in the press's own event, as browsers start audio only on a user's gesture. */
  unlock() {
    this.#pressedAt = performance.now();
    return this.#clock.unlock();
  }

  /** Load another project's lines, paused at the start. */
  load(projectId) {
    this.stop();
    this.#sounds.clear();
    this.#sounds = new SoundCache(projectId, (lineId) => this.#line(lineId));
    this.#sounds.events.on("grown", () => this.#pump());
    this.playlist = new Playlist();
    this.#moveTo(null, 0);
  }

  /**
   * Update the lines; the play-head keeps its line. A line whose audio changed is unscheduled,
   * even while it plays, and starts again. @param {Line[]} lines @param {import("../core/types").ProjectSettings} [settings]
   * @param {(line: Line) => number | null} [gapOf] the gap before a character's lines
   */
  refresh(lines, settings, gapOf) {
    const before = this.playlist;
    this.playlist = new Playlist(lines, settings, gapOf);
    this.#sounds.refresh();
    if (!this.#line(this.#rest.lineId)) this.#goNear(before);
    this.#takeBack(before);
    this.#clock.pan((lineId) => this.#panOf(lineId));
    const allLaid = this.playing && this.#cursor.lineId === null;
    if (!allLaid && !this.#line(this.#cursor.lineId)) this.#cursor = { ...this.#rest };
    this.#pump();
  }

  /** Play on from the play-head. */
  async play() {
    const mute = setTimeout(() => bus.emit("player.muted"), PATIENCE_MS);
    await this.unlock().finally(() => clearTimeout(mute));
    if (this.playing || !this.playlist.lines.length) return;
    this.playing = true;
    this.#clock.waits.length = 0;
    this.#clock.laid.clear();
    this.first_sound_ms = null;
    this.#timer = setInterval(() => this.#pump(), PUMP_MS);
    this.#pump();
    this.#emitChange();
  }

  /** Play from a line on, through `until` when given. @param {string | null} [until] @param {number} [offset] in samples of the line */
  async playFrom(lineId, until = null, offset = 0) {
    this.stop();
    this.#moveTo(lineId, offset);
    this.#until = until;
    await this.play();
  }

  /** Pause; the play-head stays. */
  stop() {
    const { lineId, offset, pcm } = this.#head();
    clearInterval(this.#timer);
    this.#clock.clear();
    this.playing = false;
    this.waiting = false;
    this.#until = null;
    this.#moveTo(lineId, offset, pcm);
  }

  /** Move the play-head to `place` in samples; playback goes on from there. */
  async seek(place) {
    const wasPlaying = this.playing;
    this.stop();
    const at = Math.min(Math.max(0, Math.round(place)), Math.max(0, this.playlist.total - 1));
    const index = this.#indexAt(at);
    this.#moveTo(this.playlist.lines[index]?.line_id ?? null, at - (this.playlist.starts[index] ?? 0));
    if (wasPlaying) await this.play();
  }

  /** @param {number} rate 1 is as spoken; the pitch stays */
  async setRate(rate) {
    this.#stretch = new TimeStretch(rate);
    await this.seek(this.place);
  }

  /** A place in a gap is one before the line that follows. */
  #indexAt(place) {
    const { starts, lengths } = this.playlist;
    const index = this.playlist.at(place);
    if (place < starts[index] + lengths[index]) return index;
    const next = starts.findIndex((start, at) => at > index && start > place);
    return next < 0 ? index : next;
  }

  #head() {
    const current = this.playing ? this.#clock.current : null;
    if (!current) return this.#rest;
    const { lineId, offset, rate, pcm } = current.piece;
    return { lineId, offset: Math.round(offset + current.samples * rate), pcm };
  }

  #line(lineId) {
    return this.playlist.lines[this.playlist.indexOf(lineId)];
  }

  #moveTo(lineId, offset, pcm = null) {
    const known = lineId ?? this.playlist.lines[0]?.line_id ?? null;
    this.#cursor = { lineId: known, offset, pcm };
    this.#rest = { lineId: known, offset, pcm };
    this.#stretch = new TimeStretch(this.#stretch.rate);
    this.#emitChange();
  }

  /** The line at the play-head was deleted: stay at its place. */
  #goNear(before) {
    const index = Math.max(0, before.indexOf(this.#rest.lineId));
    const near = this.playlist.lines[Math.min(index, this.playlist.lines.length - 1)];
    this.#rest = { lineId: near?.line_id ?? null, offset: 0, pcm: null };
  }

  /** Unschedule everything from the first piece on whose line has changed. */
  #takeBack(before = this.playlist) {
    const wrong = this.#clock.coming.find((piece) => !this.#holds(piece));
    if (!wrong) return;
    this.#clock.cut(wrong);
    this.#begin(this.#line(wrong.lineId) ? wrong.lineId : this.#lineAfter(wrong.lineId, before));
  }

  #holds({ lineId, pcm }) {
    const line = this.#line(lineId);
    return Boolean(line) && (!pcm || this.#sounds.holds(pcm, line));
  }

  /** The line after a deleted one; none if only that one was to be played. */
  #lineAfter(lineId, before) {
    if (this.#until) return null;
    const after = before.lines.slice(before.indexOf(lineId));
    return after.find(({ line_id: id }) => this.#line(id))?.line_id ?? null;
  }

  /** Schedule a line from its start. */
  #begin(lineId) {
    this.#cursor = { lineId, offset: 0, pcm: null };
    this.#stretch = new TimeStretch(this.rate);
    this.#clock.recount(lineId);
  }

  /** Schedule available audio up to the horizon, then report the play-head. */
  #pump() {
    if (!this.playing) return;
    this.#takeBack();
    while (this.#clock.ahead_s < AHEAD_S && this.#layNext());
    this.#fetchAhead();
    this.#follow();
  }

  #layNext() {
    const line = this.#line(this.#cursor.lineId);
    if (!line) return false;
    if (!isComing(line)) return this.#advance();
    if (line.kind === "silence") return this.#laySilence(line);
    if (this.#cursor.offset < 0) return this.#layGap();
    const pcm = this.#sounds.of(line);
    if (!this.#holds(this.#cursor)) this.#begin(line.line_id);
    if (pcm.length > this.#cursor.offset) return this.#laySound(pcm);
    return pcm.complete && this.#finish();
  }

  #laySilence(line) {
    const samples = Math.max(0, line.samples - this.#cursor.offset);
    this.#clock.silence(this.#about(), Math.round(samples / this.rate));
    this.#cursor.offset += samples;
    return this.#advance();
  }

  /** The place in a gap counts up to the line's beginning, 0. */
  #layGap() {
    this.#clock.silence(this.#about(), Math.round(-this.#cursor.offset / this.rate));
    this.#cursor.offset = 0;
    return true;
  }

  #laySound(pcm) {
    const level_db = this.levelOf(this.#line(this.#cursor.lineId));
    const taken = amplify(pcm.slice(this.#cursor.offset, PIECE_SAMPLES), level_db);
    const samples = this.#stretch.push(taken);
    this.#cursor.pcm = pcm;
    if (samples.length) this.#clock.sound(this.#about(), samples, taken.length);
    this.#cursor.offset += taken.length;
    return true;
  }

  #about() {
    return { ...this.#cursor, rate: this.rate, pan: this.#panOf(this.#cursor.lineId) };
  }

  #panOf(lineId) {
    const line = this.#line(lineId);
    return line ? this.panOf(line) : null;
  }

  /** The line is scheduled to its end, with what is left in the time stretcher. */
  #finish() {
    const samples = this.#stretch.flush();
    if (samples.length) this.#clock.sound(this.#about(), samples, 0);
    return this.#advance();
  }

  #advance() {
    const { lines } = this.playlist;
    const last = this.#cursor.lineId === this.#until;
    const next = lines[this.playlist.indexOf(this.#cursor.lineId) + 1]?.line_id ?? null;
    const again = last && this.loop && this.#cursor.offset > 0;
    const offset = again || last ? 0 : -this.playlist.gapBefore(next);
    this.#cursor = { lineId: again ? this.#until : last ? null : next, offset, pcm: null };
    this.#stretch = new TimeStretch(this.rate);
    return this.#cursor.lineId !== null;
  }

  /** The line at the cursor is always fetched; those after it once they exist. */
  #fetchAhead() {
    const index = this.playlist.indexOf(this.#cursor.lineId);
    if (index < 0 || this.#until) return;
    this.playlist.lines.slice(index + 1, index + 3).filter(isAudible).forEach((line) => this.#sounds.of(line));
  }

  #follow() {
    const current = this.#clock.current;
    if (current) this.#advancePlayHead(current);
    const dry = this.#clock.dry;
    if (dry && this.#cursor.lineId === null) return this.#end();
    if (this.waiting === dry) return;
    this.waiting = dry;
    this.#emitChange();
  }

  #advancePlayHead({ piece, samples }) {
    const before = this.#rest.lineId;
    this.#rest = this.#head();
    if (this.first_sound_ms === null && piece.node) {
      this.first_sound_ms = performance.now() - this.#pressedAt - (samples / RATE_HZ) * 1000;
    }
    if (before !== piece.lineId) this.#emitChange();
  }

  /** At the end of the dialog the play-head goes back to the start; after a single line it stays there. */
  #end() {
    const single = this.#until;
    this.stop();
    this.#moveTo(single, 0);
    bus.emit("player.ended");
  }

  #emitChange() {
    bus.emit("player.changed");
  }
}
