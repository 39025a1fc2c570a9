/**
 * Time stretching at constant pitch: overlapping windows, each taken where it fits the one before
 * best (WSOLA; Verhelst and Roelands, ICASSP 1993).
 */

const HALF = 360; // samples of half a window, 15 ms at 24 kHz
const SEARCH = 200;
const COARSE = 4;
const FADE = Float32Array.from({ length: HALF }, (_, n) => 0.5 - 0.5 * Math.cos((Math.PI * n) / HALF));

export class TimeStretch {
  #input = new Float32Array(0);
  #tail = null;
  #at = 0;
  #taken = 0;
  #given = 0;

  /** @param {number} rate 2 is twice as fast */
  constructor(rate) {
    this.rate = rate;
  }

  /** Add samples; returns the finished output. @param {Float32Array} samples */
  push(samples) {
    if (this.rate === 1) return samples;
    this.#taken += samples.length;
    const out = this.#windows(samples);
    this.#given += out.length;
    return out;
  }

  /** The rest of the output, exact to the sample; the stretcher starts over afterwards. */
  flush() {
    const owed = Math.round(this.#taken / this.rate) - this.#given;
    if (this.rate === 1 || owed <= 0) return new Float32Array(0);
    const enough = Math.ceil(owed * this.rate) + 4 * HALF + 2 * SEARCH;
    return this.#windows(new Float32Array(enough)).slice(0, owed);
  }

  #windows(samples) {
    this.#input = concat(this.#input, samples);
    const out = [];
    while (Math.round(this.#at) + SEARCH + 2 * HALF <= this.#input.length) out.push(this.#window());
    const used = Math.max(0, Math.round(this.#at) - SEARCH);
    this.#input = this.#input.slice(used);
    this.#at -= used;
    return out.reduce(concat, new Float32Array(0));
  }

  #window() {
    const from = this.#tail ? this.#best(Math.round(this.#at)) : Math.round(this.#at);
    const out = this.#input.slice(from, from + HALF);
    if (this.#tail) for (let n = 0; n < HALF; n += 1) out[n] = FADE[n] * out[n] + (1 - FADE[n]) * this.#tail[n];
    this.#tail = this.#input.slice(from + HALF, from + 2 * HALF);
    this.#at += HALF * this.rate;
    return out;
  }

  /** The position near `target` where the input is most similar to the natural continuation. */
  #best(target) {
    let best = target;
    let most = -Infinity;
    for (let from = Math.max(0, target - SEARCH); from <= target + SEARCH; from += COARSE) {
      let alike = 0;
      for (let n = 0; n < HALF; n += COARSE) alike += this.#input[from + n] * this.#tail[n];
      if (alike > most) [most, best] = [alike, from];
    }
    return best;
  }
}

function concat(first, second) {
  const whole = new Float32Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}
