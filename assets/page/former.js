/** Lines that were here: what somebody deletes under a person's hands can be written anew. */
export class Former {
  #lines = new Map();

  /** @param {object} old @param {object} now states of the dialog, one after the other */
  remember(old, now) {
    let after = null;
    for (const lineId of old.order) {
      if (now.lines.has(lineId)) after = lineId;
      else this.#lines.set(lineId, { line: old.lines.get(lineId), after });
    }
  }

  /** @returns {{line: object, after: string | null} | undefined} a line with the one it stood after */
  of(lineId) {
    return this.#lines.get(lineId);
  }

  clear() {
    this.#lines.clear();
  }
}
