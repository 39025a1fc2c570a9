/** Plays a job as it is made: streamed samples laid back to back on the audio clock. */
import { RATE_HZ, layout, segmentAt } from "./scene.js";
import { SegmentPcm } from "./pcm.js";

const AHEAD_S = 2.5;
const LEAD_S = 0.03;
const PIECE_SAMPLES = RATE_HZ / 2;
const PUMP_MS = 100;
const KEPT_SEGMENTS = 48;
const RETRY_MS = 1000;

/**
 * Events: "change" when playing, waiting or the segment being heard changed.
 *
 * The audio context runs at the studio's rate, so a piece starts at a whole sample and the next
 * one at the sample after its last. A segment that isn't there yet is waited for.
 */
export class Player extends EventTarget {
  #context = null;
  #gain = null;
  #volume = 1;
  #job = null;
  #pcm = new Map();
  #cursor = { segmentIdx: 0, offset: 0 };
  #until = Infinity;
  #nextSample = 0;
  #pieces = [];
  #timer = null;
  #rest = 0;
  #pressedAt = null;

  constructor() {
    super();
    this.playing = false;
    this.waiting = false;
    this.segment_idx = 0;
    this.waits = [];
    this.first_sound_ms = null;
    this.layout = layout([]);
  }

  /** Place of the play-head in samples of the timeline. */
  get place() {
    const now = this.#heardSample();
    const piece = this.#pieces.find((one) => now < one.end) ?? this.#pieces.at(-1);
    if (!this.playing || !piece || now < piece.start) return this.#rest;
    const within = Math.min(now, piece.end) - piece.start;
    return this.layout.starts[piece.segmentIdx] + piece.offset + within;
  }

  get clock_s() {
    return this.place / RATE_HZ;
  }

  /** To be called inside the press itself: browsers let sound begin only from a gesture. */
  unlock() {
    this.#pressedAt = performance.now();
    if (!this.#context) {
      this.#context = new AudioContext({ sampleRate: RATE_HZ, latencyHint: "interactive" });
      this.#gain = new GainNode(this.#context, { gain: this.#volume });
      this.#gain.connect(this.#context.destination);
    }
    return this.#context.resume();
  }

  set volume(volume) {
    this.#volume = volume;
    if (this.#gain) this.#gain.gain.value = volume;
  }

  /** Take another job, at its beginning, paused. */
  load(job) {
    this.stop();
    this.#pcm.forEach((pcm) => pcm.drop());
    this.#pcm.clear();
    this.#job = job;
    this.waits = [];
    this.first_sound_ms = null;
    this.refresh();
    this.#moveTo(0, 0);
  }

  /** Lay the timeline out anew after segments changed; the play-head keeps its segment. */
  refresh() {
    const within = this.#rest - (this.layout.starts[this.segment_idx] ?? 0);
    this.layout = layout(this.#job?.segments ?? []);
    this.#rest = (this.layout.starts[this.segment_idx] ?? 0) + Math.max(0, within);
    if (this.playing) this.#pump();
  }

  /** Play on from the play-head. */
  async play() {
    if (!this.#job) return;
    await this.unlock();
    if (this.playing) return;
    this.playing = true;
    this.#schedule();
  }

  /** Play from a segment on, through `until` when given. */
  async playFrom(segmentIdx, until = Infinity) {
    this.stop();
    this.#moveTo(segmentIdx, 0, until);
    await this.play();
  }

  /** Stop sounding; the play-head stays. */
  stop() {
    const place = this.place;
    clearInterval(this.#timer);
    this.#pieces.forEach((piece) => piece.node?.stop());
    this.#pieces = [];
    this.playing = false;
    this.#setWaiting(false);
    if (this.layout.total) this.#moveTo(...this.#split(place), this.#until);
    this.#tell();
  }

  /** Move the play-head to `place` in samples; sounding goes on from there. */
  async seek(place) {
    const wasPlaying = this.playing;
    this.stop();
    this.#moveTo(...this.#split(place));
    if (wasPlaying) await this.play();
  }

  #split(place) {
    const at = Math.min(Math.max(0, Math.round(place)), Math.max(0, this.layout.total - 1));
    const segmentIdx = segmentAt(this.layout, at);
    return [segmentIdx, at - this.layout.starts[segmentIdx]];
  }

  #moveTo(segmentIdx, offset, until = Infinity) {
    this.#cursor = { segmentIdx, offset };
    this.#until = until;
    this.segment_idx = segmentIdx;
    this.#rest = (this.layout.starts[segmentIdx] ?? 0) + offset;
    this.#tell();
  }

  #schedule() {
    this.#nextSample = 0;
    this.#timer = setInterval(() => this.#pump(), PUMP_MS);
    this.#pump();
    this.#tell();
  }

  #nowSample() {
    return Math.ceil((this.#context?.currentTime ?? 0) * RATE_HZ);
  }

  #heardSample() {
    const latency = (this.#context?.outputLatency || 0) * RATE_HZ;
    return Math.max(0, this.#nowSample() - Math.round(latency));
  }

  /** Lay down what exists up to the horizon, then say where the play-head is. */
  #pump() {
    if (!this.playing) return;
    const horizon = this.#nowSample() + AHEAD_S * RATE_HZ;
    while (this.#nextSample < horizon && this.#layNext());
    this.#fetchAhead();
    this.#follow();
  }

  #layNext() {
    const { segmentIdx, offset } = this.#cursor;
    const segment = this.#job.segments[segmentIdx];
    if (!segment || segmentIdx > this.#until) return false;
    if (this.#job.over(segmentIdx)) return this.#advance();
    if (segment.kind === "silence") return this.#laySilence(segment, offset);
    const pcm = this.#samplesOf(segmentIdx);
    if (pcm.length > offset) return this.#layPiece(pcm.slice(offset, PIECE_SAMPLES));
    return pcm.complete && this.#advance();
  }

  #laySilence(segment, offset) {
    this.#place(segment.samples - offset, null);
    return this.#advance();
  }

  #layPiece(samples) {
    const buffer = new AudioBuffer({ length: samples.length, sampleRate: RATE_HZ });
    buffer.copyToChannel(samples, 0);
    const node = new AudioBufferSourceNode(this.#context, { buffer });
    node.connect(this.#gain);
    node.start(this.#place(samples.length, node) / RATE_HZ);
    return true;
  }

  /** Reserve the next stretch of the audio clock. @returns {number} its first sample */
  #place(length, node) {
    const earliest = this.#nowSample() + Math.round(LEAD_S * RATE_HZ);
    const late = this.#nextSample < this.#nowSample();
    if (late && this.#nextSample) this.#noteWait(earliest);
    const start = late || !this.#nextSample ? earliest : this.#nextSample;
    const { segmentIdx, offset } = this.#cursor;
    this.#pieces.push({ start, end: start + length, segmentIdx, offset, node });
    this.#cursor.offset += length;
    this.#nextSample = start + length;
    return start;
  }

  #noteWait(resumed) {
    const { segmentIdx } = this.#cursor;
    this.waits.push({ segment_idx: segmentIdx, wait_s: (resumed - this.#nextSample) / RATE_HZ });
  }

  #advance() {
    this.#cursor = { segmentIdx: this.#cursor.segmentIdx + 1, offset: 0 };
    return true;
  }

  /** The segment at the cursor is always asked for; those after it once they exist. */
  #fetchAhead() {
    const { segmentIdx } = this.#cursor;
    for (let ahead = segmentIdx + 1; ahead <= segmentIdx + 2; ahead += 1) {
      const segment = this.#job.segments[ahead];
      if (segment?.kind !== "silence" && segment && this.#job.audible(ahead)) {
        this.#samplesOf(ahead);
      }
    }
  }

  #samplesOf(segmentIdx) {
    let pcm = this.#pcm.get(segmentIdx);
    if (!pcm || (pcm.failed_at_ms ?? Infinity) < performance.now() - RETRY_MS) {
      pcm = new SegmentPcm(this.#job.id, segmentIdx);
      pcm.addEventListener("grow", () => this.#pump());
    }
    this.#pcm.delete(segmentIdx);
    this.#pcm.set(segmentIdx, pcm);
    if (this.#pcm.size > KEPT_SEGMENTS) this.#forgetOldest();
    return pcm;
  }

  #forgetOldest() {
    const [oldest, pcm] = this.#pcm.entries().next().value;
    pcm.drop();
    this.#pcm.delete(oldest);
  }

  #follow() {
    const heard = this.#heardSample();
    while (this.#pieces.length > 1 && this.#pieces[0].end <= heard) this.#pieces.shift();
    const piece = this.#pieces[0];
    if (piece && heard >= piece.start) this.#hear(piece);
    const dry = !piece || heard >= piece.end;
    if (dry && this.#ended()) return this.#end();
    this.#setWaiting(dry);
  }

  #hear(piece) {
    this.#rest = this.place;
    if (this.first_sound_ms === null && piece.node) {
      const heardFor_ms = ((this.#heardSample() - piece.start) / RATE_HZ) * 1000;
      this.first_sound_ms = performance.now() - this.#pressedAt - heardFor_ms;
    }
    if (this.segment_idx === piece.segmentIdx) return;
    this.segment_idx = piece.segmentIdx;
    this.#tell();
  }

  #ended() {
    const { segmentIdx } = this.#cursor;
    return segmentIdx >= this.#job.segments.length || segmentIdx > this.#until;
  }

  #end() {
    const wholeScene = this.#until === Infinity;
    const resume = Math.min(this.#cursor.segmentIdx, this.#job.segments.length - 1);
    this.stop();
    this.#moveTo(wholeScene ? 0 : resume, 0);
    this.dispatchEvent(new Event("end"));
  }

  #setWaiting(waiting) {
    if (this.waiting === waiting) return;
    this.waiting = waiting;
    this.#tell();
  }

  #tell() {
    this.dispatchEvent(new Event("change"));
  }
}
