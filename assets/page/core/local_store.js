/** The browser's storage; if it is blocked or full, values last as long as the page. */
import { newId } from "../document/document.js";

class Store {
  #reach;
  #page = new Map();

  /** @param {() => Storage} reach throws where the browser denies it */
  constructor(reach) {
    this.#reach = reach;
  }

  /** @param {string} key @returns {string | null} */
  get(key) {
    return this.#page.get(key) ?? this.#tried((storage) => storage.getItem(key)) ?? null;
  }

  /** A stored JSON value; `other` if there is none, or it is invalid. */
  json(key, other) {
    try {
      return JSON.parse(this.get(key) ?? "null") ?? other;
    } catch {
      return other;
    }
  }

  /** @param {string} key @param {string} value @returns {boolean} whether it outlives the page */
  set(key, value) {
    const isKept = this.#tried((storage) => (storage.setItem(key, value), true)) ?? false;
    if (isKept) this.#page.delete(key);
    else this.#page.set(key, value);
    return isKept;
  }

  /** @param {string} key */
  remove(key) {
    this.#page.delete(key);
    this.#tried((storage) => storage.removeItem(key));
  }

  /** @param {string} prefix @returns {string[]} keys that begin so */
  keys(prefix) {
    const kept = this.#tried((storage) => Object.keys(storage)) ?? [];
    return [...new Set([...kept, ...this.#page.keys()])].filter((key) => key.startsWith(prefix));
  }

  #tried(act) {
    try {
      return act(this.#reach());
    } catch {
      return null;
    }
  }
}

/** For good, and for all tabs. */
export const localStore = new Store(() => localStorage);
/** For this tab, until it is closed. */
export const sessionStore = new Store(() => sessionStorage);

const CLIENT_KEY = "tableread.person";

export const CLIENT_ID = localStore.get(CLIENT_KEY) ?? newId();
localStore.set(CLIENT_KEY, CLIENT_ID);
