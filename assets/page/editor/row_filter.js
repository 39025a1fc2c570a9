/** Shows the lines of one state or one speaker only, says how many those are, and leads back to all. */
import { bus } from "../core/bus.js";
import { afterPaint, byId, setHidden, setText } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { announce } from "../core/notices.js";
import { t } from "../core/texts.js";
import { groupLines } from "./goto_bar.js";

/** @import { Parts } from "../core/types" */

const ALL = "";

export class RowFilter {
  #parts;
  #select = byId("filter");
  #names = "";

  /** @param {Pick<Parts, "project" | "badges" | "selection" | "cast" | "lines">} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#select.addEventListener("change", () => this.#choose());
    byId("filter-clear").addEventListener("click", () => this.clear());
    bus.on("project.opened", () => {
      this.#select.value = ALL;
      this.#show();
    });
    for (const name of /** @type {const} */ (["project.changed", "checks.changed", "selection.changed"])) {
      bus.on(name, () => this.#soon());
    }
  }

  /** Show all lines again. */
  clear() {
    this.#select.value = ALL;
    this.#show();
    this.#select.focus();
  }

  #choose() {
    this.#show();
    announce(t`Shown: ${this.#select.selectedOptions[0].textContent}.`);
  }

  #groups() {
    const { project, badges, cast } = this.#parts;
    return groupLines(project.lines, cast.speakers, badges.toCheck);
  }

  #soon = afterPaint(() => {
    this.#offer();
    if (this.#select.value !== ALL) this.#show();
  });

  /** The states, and the speakers that there are now. */
  #offer() {
    const { lines } = this.#parts.project;
    const spoken = lines.filter(({ kind }) => kind !== "silence").length;
    setText(byId("filter-all"), spoken ? t`All ${formatCount(spoken, "line")}` : t`All lines`);
    const names = this.#parts.cast.speakers.map(({ name }) => name);
    const shown = JSON.stringify(names);
    if (shown === this.#names || document.activeElement === this.#select) return;
    this.#names = shown;
    const chosen = this.#select.value;
    const groups = groupLines([], this.#parts.cast.speakers, []);
    for (const [kind, list] of [["state:", "filter-states"], ["speaker:", "filter-speakers"]]) {
      const own = groups.filter(({ key }) => key.startsWith(kind));
      byId(list).replaceChildren(...own.map(optionOf));
    }
    this.#select.value = [...this.#select.options].some(({ value }) => value === chosen) ? chosen : ALL;
    if (this.#select.value !== chosen) this.#show();
  }

  /** The lines that are worked on stay, even where they belong to others now. */
  #show() {
    const { lines, selection } = this.#parts;
    const group = this.#groups().find(({ key }) => key === this.#select.value);
    setHidden(byId("filter-clear"), !group);
    for (const option of this.#select.options) {
      if (option.value === group?.key) setText(option, `${group.label}: ${group.ids.size}`);
      else if (option.dataset.label) setText(option, option.dataset.label);
    }
    if (!group) return lines.only(null);
    return lines.only(new Set([...group.ids, ...selection.ids]));
  }
}

function optionOf({ key, label }) {
  const option = new Option(label, key);
  option.dataset.label = label;
  return option;
}
