/** The dialog as lines: rows are made once and changed in place, so 500 of them stay quick. */
import { byId, fromTemplate, safeColour, setData, setHidden, setText } from "./dom.js";
import { length } from "./format.js";
import { RATE_HZ } from "./scene.js";

const STATE_WORDS = {
  waiting: "",
  queued: "queued",
  speaking: "reading",
  ready: "ready",
  failed: "failed",
};

/** Events "play", "place" and "edit" with `detail` the line's index. */
export class Lines extends EventTarget {
  #list = byId("lines");
  #rows = [];
  #heard = null;
  #sounding = null;

  constructor() {
    super();
    this.#list.addEventListener("click", (event) => this.#press(event));
    this.#list.addEventListener("dblclick", (event) => this.#tell("edit", event));
  }

  /** @param {Array<object>} lines @param {Map<string, string>} colours */
  show(lines, colours) {
    while (this.#rows.length > lines.length) this.#rows.pop().root.remove();
    const fresh = document.createDocumentFragment();
    while (this.#rows.length < lines.length) fresh.append(this.#grow().root);
    this.#list.append(fresh);
    lines.forEach((line, idx) => this.#write(this.#rows[idx], line, colours));
    setHidden(byId("lines-empty"), lines.length > 0);
  }

  /** @param {number} lineIdx @param {{state: string, samples: number, message: string}} status */
  status(lineIdx, { state, samples, message }) {
    const row = this.#rows[lineIdx];
    if (!row) return;
    setData(row.root, "state", state);
    setText(row.state, STATE_WORDS[state]);
    setText(row.length, samples ? length(samples / RATE_HZ) : row.planned);
    setText(row.reason, state === "failed" ? message : "");
    setHidden(row.reason, state !== "failed");
  }

  /** Mark the line being spoken and keep it in view. @param {number | null} lineIdx */
  follow(lineIdx) {
    const row = this.#rows[lineIdx] ?? null;
    if (row === this.#heard) return;
    this.#heard?.root.removeAttribute("aria-current");
    this.#heard = row;
    if (!row) return;
    row.root.setAttribute("aria-current", "true");
    this.#bringIntoView(row.root);
  }

  /** Turn the button of one line into pause, that of the line before back into play. */
  sounding(lineIdx) {
    const row = this.#rows[lineIdx] ?? null;
    if (row === this.#sounding) return;
    this.#sounding?.play.setAttribute("aria-pressed", "false");
    row?.play.setAttribute("aria-pressed", "true");
    this.#sounding = row;
  }

  #bringIntoView(root) {
    const box = root.getBoundingClientRect();
    const view = this.#list.getBoundingClientRect();
    if (box.top >= view.top + 24 && box.bottom <= view.bottom - 64) return;
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const top = this.#list.scrollTop + box.top - view.top - view.height / 3;
    this.#list.scrollTo({ top, behavior: calm ? "auto" : "smooth" });
  }

  #grow() {
    const root = fromTemplate("line-template");
    root.dataset.line = String(this.#rows.length);
    const find = (name) => root.querySelector(`.line-${name}`);
    const row = {
      root,
      play: find("play"),
      speaker: find("speaker"),
      text: find("text"),
      reason: find("reason"),
      state: find("state"),
      length: find("length"),
      planned: "",
    };
    this.#rows.push(row);
    return row;
  }

  #write(row, line, colours) {
    setData(row.root, "kind", line.kind);
    const colour = safeColour(colours.get(line.speaker));
    if (row.colour !== colour) row.root.style.setProperty("--colour", (row.colour = colour));
    setText(row.speaker, line.speaker ?? "");
    setText(row.text, lineText(line));
    row.planned = line.kind === "silence" ? length(line.duration_s) : "";
    const name = line.kind === "speech" ? `Play ${line.speaker}’s line ${line.line_number}` : "Play";
    if (row.play.ariaLabel !== name) row.play.ariaLabel = name;
  }

  #press(event) {
    this.#tell(event.target.closest(".line-play") ? "play" : "place", event);
  }

  #tell(name, event) {
    const row = event.target.closest(".line");
    if (row) this.dispatchEvent(new CustomEvent(name, { detail: Number(row.dataset.line) }));
  }
}

function lineText(line) {
  if (line.kind === "silence") return "Pause";
  if (line.kind === "audio") return line.path;
  return line.text;
}

/** What a line's segments amount to. @param {Array<object>} segments of one line */
export function lineStatus(segments) {
  const has = (...states) => segments.some((segment) => states.includes(segment.state));
  const samples = segments.reduce((sum, segment) => sum + (segment.samples ?? 0), 0);
  const message = segments.find((segment) => segment.state === "failed")?.message ?? "";
  return { state: stateOf(segments, has), samples: has("saved", "generated") ? samples : 0, message };
}

function stateOf(segments, has) {
  if (has("failed")) return "failed";
  if (has("cancelled")) return "waiting";
  if (segments.every(({ state }) => state === "saved" || state === "generated")) return "ready";
  if (has("started", "saved", "generated") && !onlySilenceMade(segments)) return "speaking";
  return has("queued") ? "queued" : "waiting";
}

function onlySilenceMade(segments) {
  return segments.every(({ kind, state }) => kind === "silence" || state === "queued" || state === "planned");
}
