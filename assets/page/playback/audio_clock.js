/**
 * The audio clock: schedules pieces of audio and silence back to back, to the sample; and the page's volume.
 */
import { RATE_HZ } from "../document/document.js";

/** @import { ScheduledSound } from "../core/types" */

/**
 * With "playback" the scene plays even if the phone is muted, as films and music do. The microphone can be opened
 * only with "play-and-record".
 * @param {"playback" | "play-and-record"} purpose
 */
export function setAudioPurpose(purpose) {
  // Safari's own, which the type checker's library doesn't have.
  const { audioSession } = /** @type {Navigator & {audioSession?: {type: string}}} */ (navigator);
  if (audioSession) audioSession.type = purpose;
}

const elements = new Set();
let level = 1;

/** Apply the page's volume to an audio element. @param {HTMLAudioElement} audio @returns {HTMLAudioElement} */
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
const KNEE = 0.8;

/**
 * Change the level of samples, as the studio does where it lays a scene out: what would be beyond full scale is bent.
 * @param {Float32Array<ArrayBuffer>} samples @param {number} level_db @returns {Float32Array<ArrayBuffer>}
 */
export function amplify(samples, level_db) {
  if (!level_db) return samples;
  const gain = 10 ** (level_db / 20);
  return samples.map((sample) => {
    const louder = sample * gain;
    const size = Math.abs(louder);
    if (gain <= 1 || size <= KNEE) return louder;
    return Math.sign(louder) * (KNEE + (1 - KNEE) * Math.tanh((size - KNEE) / (1 - KNEE)));
  });
}

/**
 * The audio context runs at the studio's rate, so that a piece starts exactly at the sample after the
 * last one of the piece before.
 */
export class AudioClock {
  #context = null;
  #gain = null;
  #volume = 1;
  #next = 0;
  #pieces = [];

  constructor() {
    /** Unwanted gaps: the line whose audio came late, and by how much. */
    this.waits = [];
    /** Samples scheduled by line since the last start. */
    this.laid = new Map();
  }

  /** To be called in the press's own event, as browsers start audio only on a user's gesture. */
  unlock() {
    setAudioPurpose("playback");
    if (!this.#context) {
      this.#context = new AudioContext({ sampleRate: RATE_HZ, latencyHint: "interactive" });
      this.#gain = new GainNode(this.#context, { gain: this.#volume });
      this.#gain.connect(this.#context.destination);
    }
    return this.#context.resume();
  }

  /** The node that all audio passes through; null before the first press. @returns {AudioNode | null} */
  get output() {
    return this.#gain;
  }

  set volume(volume) {
    this.#volume = volume;
    if (this.#gain) this.#gain.gain.value = volume;
  }

  /** Seconds that are scheduled ahead. */
  get ahead_s() {
    return (this.#next - this.#now()) / RATE_HZ;
  }

  /** The piece that is playing, and for how many samples of the clock; null if none is. */
  get current() {
    const played = this.#playedSample();
    while (this.#pieces.length > 1 && this.#pieces[0].end <= played) this.#pieces.shift();
    const piece = this.#pieces[0];
    if (!piece || played < piece.start) return null;
    return { piece, samples: Math.min(played, piece.end) - piece.start, over: played >= piece.end };
  }

  /** Whether nothing is playing or scheduled. */
  get dry() {
    return !this.#pieces.length || this.#playedSample() >= this.#pieces.at(-1).end;
  }

  /** The pieces that haven't played to their end. @returns {ScheduledSound[]} */
  get coming() {
    const played = this.#playedSample();
    return this.#pieces.filter(({ end }) => end > played);
  }

  /** Unschedule a piece and all after it, even if it is playing. */
  cut(piece) {
    for (const { node } of this.#pieces.splice(this.#pieces.indexOf(piece))) node?.stop();
    const end = this.#pieces.at(-1)?.end ?? 0;
    this.#next = end > this.#now() ? end : 0;
  }

  /** Start to count a line's samples at 0. */
  recount(lineId) {
    this.laid.delete(lineId);
  }

  /**
   * Pan what is scheduled, also what plays. With null a sound stays mono, on both sides as it is; as soon as one voice
   * of a scene is panned all are, as each side has 3 dB less of a voice in the middle.
   * @param {(lineId: string) => number | null} panOf
   */
  pan(panOf) {
    for (const piece of this.#pieces) {
      const pan = panOf(piece.lineId);
      if (!piece.node || piece.pan === pan) continue;
      piece.pan = pan;
      this.#connect(piece);
    }
  }

  #connect({ node, pan }) {
    node.disconnect();
    const panner = pan === null ? null : new StereoPannerNode(this.#context, { pan });
    panner?.connect(this.#gain);
    node.connect(panner ?? this.#gain);
  }

  /** @param {Pick<ScheduledSound, 'lineId' | 'offset' | 'rate' | 'pcm' | 'pan'>} about @param {Float32Array<ArrayBuffer>} samples @param {number} taken of the line */
  sound(about, samples, taken) {
    const buffer = new AudioBuffer({ length: samples.length, sampleRate: RATE_HZ });
    buffer.copyToChannel(samples, 0);
    const node = new AudioBufferSourceNode(this.#context, { buffer });
    this.#connect({ ...about, node });
    node.start(this.#reserve({ ...about, node }, samples.length) / RATE_HZ);
    this.laid.set(about.lineId, (this.laid.get(about.lineId) ?? 0) + taken);
  }

  silence(about, length) {
    this.#reserve({ ...about, node: null }, length);
  }

  /** Stop at once. */
  clear() {
    for (const { node } of this.#pieces) node?.stop();
    this.#pieces = [];
    this.#next = 0;
  }

  /** @returns {number} the first sample after what is scheduled */
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
