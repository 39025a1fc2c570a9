/** Find and replace in the dialog; matches are highlighted in their rows. */
import { bus } from "../core/bus.js";
import { byId, markedText, setText } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { showDone } from "../core/notices.js";
import { t } from "../core/texts.js";

/** @import { Parts } from "../core/types" */

const MARK = "found";

export class FindBar {
  #bar = byId("find-bar");
  #what = byId("find");
  #with = byId("replace");
  #parts;
  #found = [];
  /** How often it is in each line where it is. */
  #hits = new Map();
  #unfollow = () => {};

  /** @param {Pick<Parts, "project" | "lines" | "selection" | "show">} parts */
  constructor(parts) {
    this.#parts = parts;
    for (const input of [this.#what, byId("find-case"), byId("find-word")]) {
      input.addEventListener("input", () => this.#search());
    }
    this.#bar.addEventListener("keydown", (event) => this.#key(event));
    byId("find-open").addEventListener("click", () => this.open());
    byId("find-next").addEventListener("click", () => this.#go(1));
    byId("find-previous").addEventListener("click", () => this.#go(-1));
    byId("replace-one").addEventListener("click", () => this.#replaceOne());
    byId("replace-all").addEventListener("click", () => this.#replaceAll());
    byId("find-close").addEventListener("click", () => this.close());
  }

  open() {
    const marked = markedText();
    this.#parts.show("lines");
    this.#bar.hidden = false;
    this.#unfollow();
    this.#unfollow = bus.on("project.changed", () => this.#search());
    if (marked && !marked.includes("\n")) this.#what.value = marked;
    this.#what.select();
    this.#search();
  }

  close() {
    this.#bar.hidden = true;
    this.#unfollow();
    CSS.highlights?.delete(MARK);
    this.#parts.selection.focus();
  }

  #key(event) {
    if (event.key === "Escape") this.close();
    else if (event.key === "Enter" && event.target === this.#what) this.#go(event.shiftKey ? -1 : 1);
    else if (event.key === "Enter" && event.target === this.#with) this.#replaceOne();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #pattern() {
    const escaped = this.#what.value.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
    const word = byId("find-word").checked ? `(?<![\\p{L}\\p{N}_])${escaped}(?![\\p{L}\\p{N}_])` : escaped;
    return new RegExp(word, byId("find-case").checked ? "gu" : "giu");
  }

  #search() {
    const pattern = this.#what.value ? this.#pattern() : null;
    const { project, lines } = this.#parts;
    const ranges = [];
    this.#hits.clear();
    for (const line of pattern ? project.lines : []) {
      if (line.kind !== "speech") continue;
      const hits = [...line.text.matchAll(pattern)];
      if (hits.length) this.#hits.set(line.line_id, hits.length);
      const node = lines.row(line.line_id)?.text.firstChild;
      if (node && node.length === line.text.length) ranges.push(...hits.map((hit) => rangeOf(node, hit)));
    }
    this.#found = [...this.#hits.keys()];
    const total = countAll(this.#hits.values());
    if (typeof Highlight !== "undefined") CSS.highlights.set(MARK, new Highlight(...ranges));
    const found = total ? t`${total} in ${formatCount(this.#found.length, "line")}` : t`No matches`;
    setText(byId("find-count"), pattern ? found : "");
    byId("replace-one").disabled = total === 0;
    byId("replace-all").disabled = !pattern;
  }

  #go(by) {
    const { project, selection, lines } = this.#parts;
    if (!this.#found.length) return;
    const { order } = project.view;
    const here = order.indexOf(selection.current);
    const places = this.#found.map((lineId) => order.indexOf(lineId));
    const next = by > 0 ? places.find((place) => place > here) ?? places[0] : places.findLast((place) => place < here) ?? places.at(-1);
    selection.go(order[next]);
    lines.reveal(order[next], { calm: true });
  }

  #replaceOne() {
    const { current } = this.#parts.selection;
    if (!this.#what.value) return;
    if (this.#found.includes(current)) this.#replace([current]);
    this.#go(1);
  }

  /** The studio says which lines it changed: to count those that were found would be a promise. */
  async #replaceAll() {
    const { project, selection } = this.#parts;
    this.#search();
    const found = [...this.#hits].map(([lineId, hits]) => ({ lineId, hits, text: project.line(lineId).text }));
    if (!found.length) return showDone(t`No matches, nothing replaced.`);
    await this.#replace(null);
    selection.focus();
    if (project.saving !== "saved") return showDone(t`Not replaced yet. Retrying automatically.`);
    const changed = found.filter(({ lineId, text }) => project.line(lineId)?.text !== text);
    const times = formatCount(countAll(changed.map(({ hits }) => hits)), "time");
    return showDone(changed.length ? t`Replaced ${times} in ${formatCount(changed.length, "line")}.` : t`No lines changed.`);
  }

  /** @param {string[] | null} lineIds null for all */
  #replace(lineIds) {
    const op = {
      op: "replace", find: this.#what.value, with: this.#with.value,
      whole_word: byId("find-word").checked, match_case: byId("find-case").checked, line_ids: lineIds,
    };
    this.#parts.project.edit([op]);
    return this.#parts.project.flush();
  }
}

/** @param {Iterable<number>} counts */
function countAll(counts) {
  return [...counts].reduce((sum, one) => sum + one, 0);
}

/** A static range: each change of text would update all live ranges of the page. */
function rangeOf(node, { index, 0: found }) {
  const [startOffset, endOffset] = [index, index + found.length];
  return new StaticRange({ startContainer: node, startOffset, endContainer: node, endOffset });
}
