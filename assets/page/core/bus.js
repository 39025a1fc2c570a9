/**
 * The page's events. Who emits what, with which payload, is written down in `PageEvents` of types.d.ts; the type
 * checker holds every name and payload against it.
 */

/** @import { PageEvents } from "./types" */

/**
 * Brings events to those who asked for them, in the order in which they asked.
 * @template {object} M payloads by the name of their event
 */
export class Bus {
  /** @type {Map<keyof M, Set<(payload: any) => void>>} */
  #listeners = new Map();
  /** @type {Map<keyof M, any>} */
  #latest = new Map();

  /**
   * @template {keyof M} K
   * @param {K} name @param {(payload: M[K]) => void} listener
   * @returns {() => void} ends it
   */
  on(name, listener) {
    const listeners = this.#listeners.get(name) ?? new Set();
    this.#listeners.set(name, listeners.add(listener));
    return () => void listeners.delete(listener);
  }

  /**
   * A listener that fails is reported as any fault of the page is, and keeps nothing from the others.
   * @template {keyof M} K
   * @param {K} name @param {M[K]} [payload]
   */
  emit(name, payload) {
    this.#latest.set(name, payload);
    const listeners = this.#listeners.get(name);
    for (const listener of listeners ? [...listeners] : []) {
      if (!listeners.has(listener)) continue; // another listener has ended it
      try {
        listener(payload);
      } catch (fault) {
        queueMicrotask(() => {
          throw fault;
        });
      }
    }
  }

  /**
   * What was emitted last, for who comes later.
   * @template {keyof M} K
   * @param {K} name @returns {M[K] | undefined}
   */
  latest(name) {
    return this.#latest.get(name);
  }
}

/** What concerns the page as a whole. @type {Bus<PageEvents>} */
export const bus = new Bus();
