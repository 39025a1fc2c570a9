/** Badges on rows: how a line is said where that isn't the usual way, and whether its take has a star. */
import { bus } from "../core/bus.js";
import { formatNumber } from "../core/format.js";
import { t, translateServer } from "../core/texts.js";
import { isUnsure } from "../document/document.js";
import { rowBelow } from "./row_groups.js";

/** @import { Line, LineDirection, Parts } from "../core/types" */

const MOST_CHARS = 28;

/**
 * @param {Line} line
 * @param {{next: Line | undefined, directions: LineDirection[], isStarred: boolean}} about the row below it, the
 *   stage directions in its text, and its take
 * @returns {{kind: string, text: string, title: string}[]}
 */
export function badgesOf(line, { next, directions, isStarred }) {
  if (line.kind === "silence") return [];
  const { mood, instruct, speed } = line.params ?? {};
  const pause = next?.kind === "silence" && !next.unspoken ? next.duration_s : null;
  const found = [
    isStarred && ["star", "★", t`Its take is starred`],
    isUnsure(line) && ["unsure", t`who?`, t`Nothing says who speaks: press the number of a character, or 0 for another name`],
    mood && ["mood", String(mood), t`Mood: ${mood}`],
    instruct && ["direction", String(instruct), t`Direction: ${instruct}`],
    !instruct && directions.length > 0 && [
      directions.every(({ followed }) => followed) ? "direction" : "ignored",
      t`direction`, directions.map(({ note }) => translateServer(note)).join(" "),
    ],
    speed !== undefined && Number(speed) !== 1 && ["speed", `${formatNumber(Number(speed))} ×`, t`Speed: ${formatNumber(Number(speed))}`],
    line.language && ["language", line.language, t`Language: ${line.language}`],
    line.seed !== null && line.seed !== undefined && ["seed", t`seed ${line.seed}`, t`Seed: ${line.seed}`],
    pause && ["pause", t`pause ${formatNumber(pause)} s`, t`Pause after it: ${formatNumber(pause)} s`],
  ];
  return found.filter(Boolean).map(([kind, text, title]) => ({ kind, text: shorten(text), title }));
}

function shorten(text) {
  return text.length > MOST_CHARS ? `${text.slice(0, MOST_CHARS - 1)}…` : text;
}

/** Keeps the badges of rows as their lines are. */
export class RowBadges {
  #parts;
  #starred = null;
  /** The pause below each line, by its id. @type {Map<string, string | null>} */
  #pauses = new Map();

  /** @param {Pick<Parts, "project" | "hints" | "lines">} parts */
  constructor(parts) {
    this.#parts = parts;
    bus.on("project.changed", (change) => this.#change(change));
    bus.on("checks.changed", ({ ids }) => this.#showAll(ids));
  }

  #change({ ids, order }) {
    const { order: all, starred_takes: starred } = this.#parts.project.view;
    const restarred = starred !== this.#starred;
    this.#starred = starred;
    const moved = order ? this.#findMoved() : [];
    return this.#showAll(restarred ? all : [...ids, ...moved]);
  }

  /** The lines that another pause follows than before, or none any more. @returns {string[]} */
  #findMoved() {
    const { order, lines } = this.#parts.project.view;
    return order.filter((lineId, at) => {
      const next = order[at + 1];
      const pause = lines.get(next)?.kind === "silence" ? next : null;
      if (this.#pauses.get(lineId) === pause) return false;
      this.#pauses.set(lineId, pause);
      return true;
    });
  }

  /** @param {Iterable<string>} lineIds */
  #showAll(lineIds) {
    const { project } = this.#parts;
    const { order, lines } = project.view;
    const starred = new Set(this.#starred);
    const places = new Map();
    for (const lineId of lineIds) {
      const line = lines.get(lineId);
      if (!line) continue;
      if (line.kind === "silence" && !places.size) order.forEach((id, at) => places.set(id, at));
      // A pause is a badge of the line before it.
      if (line.kind === "silence") this.#show(order[places.get(lineId) - 1], starred, line);
      else this.#show(lineId, starred);
    }
  }

  /** @param {string | undefined} lineId @param {Set<string>} starred @param {Line} [below] its next row, where that is known */
  #show(lineId, starred, below) {
    const { project, hints, lines } = this.#parts;
    const line = project.line(lineId);
    const row = lines.row(lineId);
    if (!line || !row || line.kind === "silence") return;
    const next = below ?? project.line(rowBelow(row.root)?.dataset.line);
    const isStarred = starred.has(line.take?.take_id);
    row.badge(badgesOf(line, { next, directions: hints.directionsOf(lineId), isStarred }));
  }
}
