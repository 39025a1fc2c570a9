/** The rows of the pronunciations: created once for each word, with keyboard navigation. */
import { arrangeRows, byId, fromTemplate, isDirty, setData, setHidden, setText } from "../core/dom.js";
import { fold, formatCount } from "../core/format.js";
import { t } from "../core/texts.js";

/** @import { Pronunciation, Reach } from "../core/types" */

const SHOWN = 100;

export class PronunciationRows {
  #body = byId("pronunciation-rows");
  #callbacks;
  #rows = new Map();
  #order = [];
  #entries = new Map();
  #reach = { lines: {}, hints: {} };
  #shown = SHOWN;

  /** @param {{change: (remove: string[], put: Pronunciation[]) => void, preview: (button: HTMLElement, text: string) => void, showProblem: (message: string) => void}} callbacks */
  constructor(callbacks) {
    this.#callbacks = callbacks;
    this.#body.addEventListener("keydown", (event) => this.#key(event));
  }

  /** Sort the rows alphabetically when they are shown next. */
  sort() {
    this.#order = [];
    this.#rows.clear();
    this.#shown = SHOWN;
  }

  /** @param {Pronunciation[]} entries */
  show(entries) {
    this.#entries = new Map(entries.map((entry) => [entry.written, entry]));
    const known = new Set(this.#order);
    const fresh = [...this.#entries.keys()].filter((written) => !known.has(written));
    // New entries are on top, where they were typed; the others keep their place.
    this.#order = [...fresh.sort((a, b) => a.localeCompare(b)), ...this.#order];
    this.#lay();
  }

  more() {
    this.#shown += 2 * SHOWN;
    this.#lay();
  }

  /** @param {Pick<Reach, 'lines' | 'hints'>} reach by word */
  reach(reach) {
    this.#reach = reach;
    for (const [written, row] of this.#rows) this.#writeReach(row, written);
  }

  /** The entry for a word; case is ignored. @param {Pronunciation[]} entries */
  like(word, entries) {
    const own = entries.find(({ written }) => written === word);
    return own ?? entries.find((one) => !one.match_case && fold(one.written) === fold(word));
  }

  /** Focus the spoken form of a word. */
  focus(written) {
    const field = this.#rows.get(written)?.querySelector(".entry-spoken");
    field?.focus();
    field?.select();
  }

  #lay() {
    const present = this.#order.filter((written) => this.#entries.has(written));
    const shown = present.slice(0, this.#shown);
    const rows = shown.map((written) => this.#row(written));
    arrangeRows(this.#body, rows);
    const left = present.length - shown.length;
    setHidden(byId("pronunciation-more"), left === 0);
    setText(byId("pronunciation-more"), t`Show more (${left} left)`);
  }

  #row(written) {
    const row = this.#rows.get(written) ?? this.#made(written);
    const entry = this.#entries.get(written);
    put(row, "written", entry.written);
    put(row, "spoken", entry.spoken);
    part(row, "on").checked = entry.enabled;
    part(row, "case").checked = entry.match_case;
    setData(row, "enabled", String(entry.enabled));
    for (const [name, label] of Object.entries(LABELS)) part(row, name).ariaLabel = label(written);
    this.#writeReach(row, written);
    return row;
  }

  #made(written) {
    const row = fromTemplate("pronunciation-template");
    row.dataset.written = written;
    this.#rows.set(written, row);
    const own = () => row.dataset.written;
    const entry = () => this.#entries.get(own());
    const change = (fields) => entry() && this.#callbacks.change([], [{ ...entry(), ...fields }]);
    part(row, "written").addEventListener("change", () => this.#rename(row));
    part(row, "spoken").addEventListener("change", ({ target }) => change({ spoken: clean(target.value) }));
    part(row, "on").addEventListener("change", ({ target }) => change({ enabled: target.checked }));
    part(row, "case").addEventListener("change", ({ target }) => change({ match_case: target.checked }));
    part(row, "hear").addEventListener("click", ({ currentTarget }) =>
      this.#callbacks.preview(currentTarget, part(row, "spoken").value));
    part(row, "remove").addEventListener("click", () => this.#remove(row));
    return row;
  }

  #rename(row) {
    const field = part(row, "written");
    const from = row.dataset.written;
    const written = clean(field.value);
    const entry = this.#entries.get(from);
    if (written === from || !entry) return;
    if (!written || this.#entries.has(written)) {
      field.value = from;
      this.#callbacks.showProblem(written ? t`“${written}” is in the list already.` : t`Enter a word. To delete the entry, press Remove.`);
      return;
    }
    row.dataset.written = written;
    this.#rows.delete(from);
    this.#rows.set(written, row);
    this.#order = this.#order.map((one) => (one === from ? written : one));
    this.#callbacks.change([from], [{ ...entry, written }]);
  }

  #remove(row) {
    const next = row.nextElementSibling ?? row.previousElementSibling;
    this.#callbacks.change([row.dataset.written], []);
    (next ? part(next, "remove") : byId("pronunciation-written")).focus();
  }

  #writeReach(row, written) {
    const lines = this.#reach.lines[written];
    setText(part(row, "lines"), lines === undefined ? "" : lines ? formatCount(lines, "line") : t`no line`);
    setData(row, "unused", String(lines === 0));
    const hints = (this.#reach.hints[written] ?? []).join(" ");
    setText(part(row, "hint"), hints);
    setHidden(part(row, "hint"), !hints);
  }

  /** Enter and the arrow keys move within the column; Escape restores the text. */
  #key(event) {
    const { target, key } = event;
    const column = target.classList[0];
    if (key === "Escape" && isDirty(target)) {
      const entry = this.#entries.get(target.closest("tr").dataset.written);
      target.value = column === "entry-written" ? entry.written : entry.spoken;
      event.preventDefault();
      target.blur();
      return target.focus();
    }
    const by = { ArrowDown: 1, ArrowUp: -1, Enter: target.matches("input") ? 1 : 0 }[key];
    if (!by) return undefined;
    event.preventDefault();
    const rows = [...this.#body.children];
    const row = rows[rows.indexOf(target.closest("tr")) + by];
    const field = row?.querySelector(`.${column}`) ?? (by < 0 ? byId("pronunciation-written") : null);
    if (!field) {
      target.blur(); // commits the typed text
      return target.focus();
    }
    field.focus();
    return field.select?.();
  }
}

const LABELS = {
  on: (written) => t`Use the pronunciation of ${written}`,
  written: (written) => t`Word: ${written}`,
  spoken: (written) => t`Say ${written} as`,
  case: (written) => t`Match case of ${written}`,
  hear: (written) => t`Listen to ${written}`,
  remove: (written) => t`Remove ${written}`,
};

function part(row, name) {
  return row.querySelector(`.entry-${name}`);
}

function put(row, name, value) {
  const field = part(row, name);
  if (!isDirty(field) && field.value !== value) field.value = value;
}

function clean(text) {
  return text.normalize("NFC").trim().replace(/\s+/g, " ");
}
