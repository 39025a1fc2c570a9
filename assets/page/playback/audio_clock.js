/**
 * The audio clock: pieces of sound and silence scheduled back to back on it, to the sample; and how loud the page
 * is.
 */
import { RATE_HZ } from "../document/document.js";

/** @import { ScheduledSound } from "../core/types" */

/**
 * As "playback" the scene sounds with the silent switch on, as films and music do. No microphone can be opened then:
 * that takes "play-and-record".
 * @param {"playback" | "play-and-record"} purpose
 */
export function setAudioPurpose(purpose) {
  // Safari's own; the type checker's library hasn't it.
  const { audioSession } = /** @type {Navigator & {audioSession?: {type: string}}} */ (navigator);
  if (audioSession) audioSession.type = purpose;
}

const elements = new Set();
let level = 1;

/** Let a sound of its own follow the slider. @param {HTMLAudioElement} audio @returns {HTMLAudioElement} */
export function followVolume(audio) {
  elements.add(audio);
  audio.volume = level;
  return audio;
}

/** @param {number} volume 0 to 1 */
export function setVolume(volume) {
  level = volume;
  for (const audio of elements) audio.volume = volume;
}

const LEAD_S = 0.03;

/**
 * The audio context runs at the studio's rate, so a piece starts at a whole sample and the next
 * one at the sample after its last.
 */
export class AudioClock {
  #context = null;
  #gain = null;
  #volume = 1;
  #next = 0;
  #pieces = [];

  constructor() {
    /** Gaps that weren't written: the line whose sound came late, and by how much. */
    this.waits = [];
    /** Samples laid down by line since the last start. */
    this.laid = new Map();
  }

  /** To be called inside the press itself: browsers let sound begin only from a gesture. */
  unlock() {
    setAudioPurpose("playback");
    if (!this.#context) {
      this.#context = new AudioContext({ sampleRate: RATE_HZ, latencyHint: "interactive" });
      this.#gain = new GainNode(this.#context, { gain: this.#volume });
      this.#gain.connect(this.#context.destination);
    }
    return this.#context.resume();
  }

  /** Where all sound passes; null before the first press. @returns {AudioNode | null} */
  get output() {
    return this.#gain;
  }

  set volume(volume) {
    this.#volume = volume;
    if (this.#gain) this.#gain.gain.value = volume;
  }

  /** Seconds laid down beyond now. */
  get ahead_s() {
    return (this.#next - this.#now()) / RATE_HZ;
  }

  /** The piece that plays, and for how many samples of the clock it has; null when none does. */
  get current() {
    const played = this.#playedSample();
    while (this.#pieces.length > 1 && this.#pieces[0].end <= played) this.#pieces.shift();
    const piece = this.#pieces[0];
    if (!piece || played < piece.start) return null;
    return { piece, samples: Math.min(played, piece.end) - piece.start, over: played >= piece.end };
  }

  /** Whether nothing sounds or is about to. */
  get dry() {
    return !this.#pieces.length || this.#playedSample() >= this.#pieces.at(-1).end;
  }

  /** What is scheduled and hasn't played to its end. @returns {ScheduledSound[]} */
  get coming() {
    const played = this.#playedSample();
    return this.#pieces.filter(({ end }) => end > played);
  }

  /** Take a piece back and all after it; what sounds of it stops. */
  cut(piece) {
    for (const { node } of this.#pieces.splice(this.#pieces.indexOf(piece))) node?.stop();
    const end = this.#pieces.at(-1)?.end ?? 0;
    this.#next = end > this.#now() ? end : 0;
  }

  /** Begin to count a line's samples at 0. */
  recount(lineId) {
    this.laid.delete(lineId);
  }

  /** @param {Pick<ScheduledSound, 'lineId' | 'offset' | 'rate' | 'pcm'>} about @param {Float32Array<ArrayBuffer>} samples @param {number} taken of the line */
  sound(about, samples, taken) {
    const buffer = new AudioBuffer({ length: samples.length, sampleRate: RATE_HZ });
    buffer.copyToChannel(samples, 0);
    const node = new AudioBufferSourceNode(this.#context, { buffer });
    node.connect(this.#gain);
    node.start(this.#reserve({ ...about, node }, samples.length) / RATE_HZ);
    this.laid.set(about.lineId, (this.laid.get(about.lineId) ?? 0) + taken);
  }

  silence(about, length) {
    this.#reserve({ ...about, node: null }, length);
  }

  /** Be silent now. */
  clear() {
    for (const { node } of this.#pieces) node?.stop();
    this.#pieces = [];
    this.#next = 0;
  }

  /** @returns {number} the first sample of the next stretch of the clock */
  #reserve(piece, length) {
    const earliest = this.#now() + Math.round(LEAD_S * RATE_HZ);
    const late = this.#next < this.#now();
    if (late && this.#next) {
      this.waits.push({ line_id: piece.lineId, wait_s: (earliest - this.#next) / RATE_HZ });
    }
    const start = late || !this.#next ? earliest : this.#next;
    this.#pieces.push({ ...piece, start, end: start + length });
    this.#next = start + length;
    return start;
  }

  #now() {
    return Math.ceil((this.#context?.currentTime ?? 0) * RATE_HZ);
  }

  #playedSample() {
    const latency = (this.#context?.outputLatency || 0) * RATE_HZ;
    return Math.max(0, this.#now() - Math.round(latency));
  }
}
