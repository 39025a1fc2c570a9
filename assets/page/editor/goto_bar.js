/** The go-to bar: counts the lines of each state and speaker, steps through them, and selects them. */
import { bus } from "../core/bus.js";
import { afterPaint, byId, fromTemplate, safeColour, setHidden, setText } from "../core/dom.js";
import { fold, formatCount } from "../core/format.js";
import { announce } from "../core/notices.js";
import { t } from "../core/texts.js";
import { isUnsure } from "../document/document.js";

/** @import { Line, Parts } from "../core/types" */

/** The states to step through; first those that need the user. */
/** @type {Array<[string, string, ((line: Line) => boolean) | null]>} */
const STATES = [
  ["failed", t`Failed`, ({ state }) => state === "failed"],
  ["unsure", t`Who speaks?`, isUnsure],
  ["check", t`To check`, null],
  ["none", t`No audio`, ({ state, kind }) => state === "none" && kind !== "silence"],
  ["stale", t`Changed`, ({ state }) => state === "stale"],
  ["locked", t`Locked`, ({ locked }) => Boolean(locked)],
];

/**
 * @typedef {{key: string, label: string, colour: string | null, ids: Set<string>}} Group
 * @param {Line[]} lines @param {Array<{name: string, colour: string}>} speakers
 * @param {string[]} toCheck ids of lines with warnings or issues
 * @returns {Group[]} the states, then the speakers; some may have no line
 */
export function groupLines(lines, speakers, toCheck) {
  const states = STATES.map(([name, label, holds]) => {
    const ids = new Set(holds ? idsOf(lines.filter(holds)) : toCheck);
    return { key: `state:${name}`, label, colour: null, ids };
  });
  const voices = new Map(speakers.map(({ name, colour }) => {
    return [fold(name), { key: speakerKey(name), label: name, colour, ids: new Set() }];
  }));
  for (const { line_id: lineId, speaker } of lines) voices.get(fold(speaker ?? ""))?.ids.add(lineId);
  return [...states, ...voices.values()];
}

/** @param {string} name of a speaker */
export function speakerKey(name) {
  return `speaker:${fold(name)}`;
}

function idsOf(lines) {
  return lines.map(({ line_id: lineId }) => lineId);
}

const TURNS = { ArrowDown: 1, ArrowUp: -1 };

/** The panel that lists these groups, and the button that goes to the next line of one. */
export class GotoBar {
  #parts;
  #panel = byId("goto-panel");
  #open = byId("goto-open");
  #next = byId("goto-next");
  #rows = new Map();
  #chosen = null;
  #unfollow = [];

  /** @param {Pick<Parts, "project" | "badges" | "selection" | "cast" | "show" | "linePanel" | "commands">} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#open.addEventListener("click", () => this.#disclose(this.#panel.hidden));
    this.#next.addEventListener("click", ({ shiftKey }) => (shiftKey ? this.#markAll(this.#chosen) : this.step(1)));
    this.#panel.addEventListener("keydown", (event) => this.#key(event));
    this.#open.addEventListener("keydown", (event) => !this.#panel.hidden && this.#key(event));
    document.addEventListener("pointerdown", ({ target }) => {
      const isOutside = target instanceof Node && !this.#panel.contains(target) && !this.#open.contains(target);
      if (isOutside) this.#disclose(false);
    });
    bus.on("project.opened", () => this.#choose(null));
    bus.on("cast.marked", ({ name }) => this.markSpeaker(name));
  }

  /** Open the panel, with the focus on the first group. */
  open() {
    this.#parts.show("lines");
    this.#disclose(true);
    this.#shown()[0]?.querySelector(".goto-go").focus();
  }

  /** Go to the next line of the last group, at first that which needs the user most. @param {1 | -1} by */
  step(by) {
    const groups = this.#groups();
    const chosen = groups.find(({ key }) => key === this.#chosen);
    const group = chosen ?? groups.find(({ key, ids }) => key.startsWith("state:") && ids.size);
    if (!group) return announce(t`Every line has audio and nothing needs checking.`);
    return this.#goTo(group, by);
  }

  /**
   * Give the line at the cursor to a character, if nothing says whose it is, and go to the next of these.
   * @param {number} place of the character in the cast; 0 asks for a name @returns {boolean} whether it was one
   */
  decide(place) {
    const { project, selection, linePanel, cast, commands } = this.#parts;
    if (!selection.current || !isUnsure(project.line(selection.current))) return false;
    if (place === 0) linePanel.askSpeaker();
    else if (commands.giveTo(cast.name(place))) this.#goTo(this.#groups().find(({ key }) => key === "state:unsure"), 1);
    return true;
  }

  /** Select all lines of a speaker. @param {string} name */
  markSpeaker(name) {
    this.#markAll(speakerKey(name));
  }

  /** Select all lines of the selected lines' speakers. */
  markSame() {
    const { project, selection } = this.#parts;
    const keys = new Set(selection.ids.map((lineId) => speakerKey(project.line(lineId).speaker ?? "")));
    const groups = this.#groups().filter(({ key }) => keys.has(key));
    this.#mark(groups.flatMap(({ ids }) => [...ids]), groups.map(({ label }) => label).join(", "));
  }

  #groups() {
    const { project, badges, cast } = this.#parts;
    return groupLines(project.lines, cast.speakers, badges.toCheck);
  }

  #goTo({ key, label, ids }, by) {
    const { selection } = this.#parts;
    this.#choose(key);
    const next = selection.nextOf(ids, by);
    if (!next) return announce(t`No lines left: ${label}.`);
    selection.go(next);
    return selection.focus();
  }

  #markAll(key) {
    const group = this.#groups().find((one) => one.key === key);
    if (!group) return;
    this.#choose(key);
    this.#mark([...group.ids], group.label);
  }

  /** Show the panel of the selected lines, which changes all of them. */
  #mark(lineIds, label) {
    const { selection, show } = this.#parts;
    if (!lineIds.length) return announce(t`No lines left: ${label}.`);
    const marked = new Set(lineIds);
    const current = marked.has(selection.current) ? selection.current : selection.nextOf(marked, 1);
    selection.set(lineIds, current);
    show("line");
    selection.focus();
    return announce(t`${formatCount(lineIds.length, "line")} selected: ${label}.`);
  }

  #choose(key) {
    this.#chosen = key;
    this.#follow();
    this.#soon();
  }

  /** Changes of lines matter only while the panel or a group is shown. */
  #follow() {
    const isNeeded = !this.#panel.hidden || this.#chosen !== null;
    if (isNeeded === this.#unfollow.length > 0) return;
    const follow = () => [bus.on("project.changed", () => this.#soon()), bus.on("checks.changed", () => this.#soon())];
    this.#unfollow.forEach((end) => end());
    this.#unfollow = isNeeded ? follow() : [];
  }

  #disclose(open) {
    setHidden(this.#panel, !open);
    this.#follow();
    this.#open.setAttribute("aria-expanded", String(open));
    if (open) this.#draw();
  }

  /** A fast voice causes hundreds of changes a second. */
  #soon = afterPaint(() => {
    if (!this.#panel.hidden || this.#chosen !== null || !this.#next.hidden) this.#draw();
  });

  #draw() {
    const groups = this.#groups();
    const chosen = groups.find(({ key }) => key === this.#chosen);
    setHidden(this.#next, !chosen?.ids.size);
    if (chosen) {
      setText(this.#next.querySelector(".label"), `${chosen.label} ${chosen.ids.size}`);
      this.#next.ariaLabel = t`${chosen.label} ${chosen.ids.size}: go to the next`;
    }
    if (!this.#panel.hidden) this.#list(groups);
  }

  /** A group keeps its row, so that a focused one keeps its focus. */
  #list(groups) {
    const keys = new Set(groups.map(({ key }) => key));
    for (const [key, row] of this.#rows) {
      if (keys.has(key)) continue;
      row.remove();
      this.#rows.delete(key);
    }
    for (const group of groups) {
      const row = this.#rows.get(group.key) ?? this.#row(group);
      row.querySelector(".swatch").style.background = group.colour ? safeColour(group.colour) : "none";
      setText(row.querySelector(".goto-name"), group.label);
      setText(row.querySelector(".goto-count"), String(group.ids.size));
      setHidden(row, group.ids.size === 0);
    }
    setHidden(byId("goto-none"), this.#shown().length > 0);
  }

  #row(group) {
    const row = fromTemplate("goto-template");
    const act = (press) => ({ shiftKey }) => {
      const { key } = group;
      this.#disclose(false);
      if (press === "mark" || shiftKey) return this.#markAll(key);
      return this.#goTo(this.#groups().find((one) => one.key === key), 1);
    };
    row.querySelector(".goto-go").addEventListener("click", act("go"));
    row.querySelector(".goto-mark").addEventListener("click", act("mark"));
    row.querySelector(".goto-mark").ariaLabel = t`Select all: ${group.label}`;
    byId(group.key.startsWith("state:") ? "goto-states" : "goto-speakers").append(row);
    this.#rows.set(group.key, row);
    return row;
  }

  #shown() {
    return [...this.#panel.querySelectorAll(".goto-row")].filter((row) => !row.hidden);
  }

  #key(event) {
    if (event.key === "Escape") {
      this.#disclose(false);
      if (this.#parts.selection.current) this.#parts.selection.focus();
      else this.#open.focus();
    } else if (event.key in TURNS) this.#turn(event.target, TURNS[event.key]);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") {
      const side = event.key === "ArrowLeft" ? ".goto-go" : ".goto-mark";
      event.target.closest(".goto-row")?.querySelector(side).focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #turn(target, by) {
    const rows = this.#shown();
    const at = rows.indexOf(target.closest(".goto-row"));
    const side = target.classList.contains("goto-mark") ? ".goto-mark" : ".goto-go";
    rows.at((at + by) % rows.length)?.querySelector(side).focus();
  }
}
