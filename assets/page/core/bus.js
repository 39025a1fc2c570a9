/**
 * The page's events. `PageEvents` in types.d.ts lists their names and payloads, which the type checker checks.
 */

/** @import { PageEvents } from "./types" */

/**
 * Delivers events to listeners, in the order in which they subscribed.
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
   * A listener that throws is reported like any fault of the page; the others are still called.
   * @template {keyof M} K
   * @param {K} name @param {M[K]} [payload]
   */
  emit(name, payload) {
    this.#latest.set(name, payload);
    const listeners = this.#listeners.get(name);
    for (const listener of listeners ? [...listeners] : []) {
      if (!listeners.has(listener)) continue; // another listener has removed it
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
   * The last payload of an event, for late subscribers.
   * @template {keyof M} K
   * @param {K} name @returns {M[K] | undefined}
   */
  latest(name) {
    return this.#latest.get(name);
  }
}

/** The bus for events of the page as a whole. @type {Bus<PageEvents>} */
export const bus = new Bus();
