/** What is written in the script and isn't the studio's yet; it outlives the page. */
import { newId } from "./dialog.js";
import { stored } from "./stored.js";

const TAB = newId();

export class ScriptDraft {
  #key = null;

  /** Another project's. @returns {{text: string, rev: number} | null} what was left behind in it */
  open(projectId) {
    const drawer = `tableread.draft.${projectId}.`;
    this.#key = `${drawer}${TAB}`;
    const key = stored.keys(drawer).at(-1);
    const left = key ? stored.json(key, null) : null;
    if (key && key !== this.#key) stored.remove(key);
    return left;
  }

  /** @param {string} text @param {number} rev of the studio that it was written on */
  keep(text, rev) {
    stored.set(this.#key, JSON.stringify({ text, rev }));
  }

  forget() {
    stored.remove(this.#key);
  }
}

/** Where a place in a text is after the text became another. @returns {(at: number) => number} */
export function shifted(before, after) {
  const most = Math.min(before.length, after.length);
  let head = 0;
  while (head < most && before[head] === after[head]) head += 1;
  let tail = 0;
  while (tail < most - head && before.at(-1 - tail) === after.at(-1 - tail)) tail += 1;
  return (at) => {
    if (at <= head) return at;
    return at >= before.length - tail ? at + after.length - before.length : Math.min(at, after.length - tail);
  };
}

/** The lines in which two texts differ, from the first to the last. @returns {[string, string]} */
export function differing(one, other) {
  const [mine, theirs] = [one.split("\n"), other.split("\n")];
  const most = Math.min(mine.length, theirs.length);
  let head = 0;
  while (head < most && mine[head] === theirs[head]) head += 1;
  let tail = 0;
  while (tail < most - head && mine.at(-1 - tail) === theirs.at(-1 - tail)) tail += 1;
  const part = (rows) => rows.slice(head, rows.length - tail).join("\n");
  return [part(mine), part(theirs)];
}
