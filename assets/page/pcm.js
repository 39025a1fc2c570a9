/** Samples of one line, growing while they stream in. */
import { lineAudio } from "./project_api.js";

/** Event "grow" with every chunk and at the end. */
export class LinePcm extends EventTarget {
  #samples = new Int16Array(24_000);
  #odd = null;
  #abort = new AbortController();

  /** @param {string} projectId @param {string} lineId @param {string} asked what the line was heard as then */
  constructor(projectId, lineId, asked) {
    super();
    this.asked = asked;
    /** The take it is or becomes; null until the studio has answered. */
    this.take = null;
    this.length = 0;
    this.complete = false;
    /** Whether it was given up before the line was whole. */
    this.cut = false;
    this.failed_at_ms = null;
    this.#read(projectId, lineId);
  }

  /** Stop the transfer and let nothing be told any more. */
  drop() {
    this.#abort.abort();
  }

  /** What was answered isn't wanted; it can be asked for again later. */
  refuse() {
    this.drop();
    this.length = 0;
    this.failed_at_ms = performance.now();
  }

  /** Float samples from `start`, at most `limit` of those that have arrived. */
  slice(start, limit) {
    const end = Math.min(this.length, start + limit);
    return Float32Array.from(this.#samples.subarray(start, end), (sample) => sample / 32_768);
  }

  async #read(projectId, lineId) {
    try {
      const response = await lineAudio(projectId, lineId, this.#abort.signal);
      this.take = response.headers.get("X-Take");
      const reader = response.body.getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) {
        this.#append(part.value);
        this.dispatchEvent(new Event("grow"));
      }
      this.#end();
    } catch {
      if (this.#abort.signal.aborted) return;
      this.failed_at_ms = performance.now();
    }
    this.dispatchEvent(new Event("grow"));
  }

  /** What was given up ends in half a sample. */
  #end() {
    this.cut = this.#odd !== null;
    this.complete = !this.cut;
    if (this.cut && !this.length) this.failed_at_ms = performance.now();
  }

  #append(bytes) {
    const whole = this.#odd ? joined(this.#odd, bytes) : bytes;
    const even = whole.length - (whole.length % 2);
    this.#odd = even < whole.length ? whole.slice(even) : null;
    this.#reserve(this.length + even / 2);
    const view = new DataView(whole.buffer, whole.byteOffset, even);
    for (let at = 0; at < even; at += 2) this.#samples[this.length++] = view.getInt16(at, true);
  }

  #reserve(length) {
    if (length <= this.#samples.length) return;
    const larger = new Int16Array(Math.max(length, this.#samples.length * 2));
    larger.set(this.#samples.subarray(0, this.length));
    this.#samples = larger;
  }
}

function joined(first, second) {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}
