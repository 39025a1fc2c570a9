/** The table read: the line at the play-head in large letters, with what comes next, on any device. */
import { t, translateTree } from "../core/texts.js";
import { byId, followTheme, Following, safeColour } from "./reading.js";

const NEXT = 4;
const SIZE_KEY = "tableread.read.size";
const SWIPE_PX = 60;

/** What is said or announced: pauses aren't shown. */
const isShown = ({ kind }) => kind !== "silence";
/** What has a number on the studio's page. */
const isNumbered = ({ kind }) => kind === "speech" || kind === "audio";

class TableReadPage {
  #lines = [];
  #colours = {};
  #at = 0;
  #shown;
  #heard = null;
  #follows = true;

  /** @param {string} projectId */
  constructor(projectId) {
    const base = `projects/${encodeURIComponent(projectId)}/reading`;
    new Following({ project: base, events: `${base}/events` }, (body) => this.#show(body), (heard) => this.#hear(heard), ended);
    byId("back").addEventListener("click", () => this.#step(-1));
    byId("forth").addEventListener("click", () => this.#step(1));
    byId("follow").addEventListener("click", () => this.#follow(!this.#follows));
    byId("larger").addEventListener("click", () => resize(1.15));
    byId("smaller").addEventListener("click", () => resize(1 / 1.15));
    document.addEventListener("keydown", (event) => this.#key(event));
    this.#swipe();
    resize(1);
  }

  #show({ name, lines, colours, heard }) {
    const kept = this.#lines[this.#at]?.line_id;
    this.#lines = lines.filter(isShown);
    this.#colours = colours;
    document.title = t`${name} · Table read`;
    byId("name").textContent = name;
    this.#go(this.#placeOf(kept) ?? Math.min(this.#at, Math.max(0, this.#lines.length - 1)));
    this.#hear(heard);
  }

  #hear(heard) {
    if (!heard) return;
    this.#heard = heard;
    if (this.#follows) this.#go(this.#placeOf(heard.line_id) ?? this.#at);
    document.body.dataset.playing = String(heard.playing);
    keepAwake(heard.playing);
  }

  #placeOf(lineId) {
    const place = this.#lines.findIndex((line) => line.line_id === lineId);
    return place < 0 ? null : place;
  }

  #follow(follows) {
    this.#follows = follows;
    byId("follow").setAttribute("aria-pressed", String(follows));
    if (follows) this.#hear(this.#heard);
  }

  #step(by) {
    this.#follow(false);
    this.#go(this.#at + by);
  }

  #go(place) {
    this.#at = Math.max(0, Math.min(place, this.#lines.length - 1));
    const line = this.#lines[this.#at];
    if (line?.line_id !== this.#shown) scrollTo(0, 0); // a long one before it was scrolled
    this.#shown = line?.line_id;
    const numbered = this.#lines.filter(isNumbered);
    const number = numbered.indexOf(line) + 1;
    const before = this.#lines[this.#at - 1];
    byId("place").textContent = number ? `${number} / ${numbered.length}` : "";
    byId("speaker").textContent = line ? whoOf(line) : "";
    byId("speaker").style.setProperty("--colour", safeColour(this.#colours[line?.speaker]));
    byId("text").textContent = line ? line.text : t`There are no lines yet.`;
    byId("before").textContent = before ? `${whoOf(before)}: ${before.text}` : "";
    byId("next").replaceChildren(...this.#lines.slice(this.#at + 1, this.#at + 1 + NEXT).map((one) => this.#item(one)));
    byId("back").disabled = this.#at === 0;
    byId("forth").disabled = this.#at >= this.#lines.length - 1;
  }

  #item(line) {
    const row = document.createElement("li");
    const button = document.createElement("button");
    const who = document.createElement("strong");
    who.textContent = whoOf(line);
    who.style.setProperty("--colour", safeColour(this.#colours[line.speaker]));
    button.append(who, ` ${line.text}`);
    button.dir = "auto";
    button.addEventListener("click", () => this.#step(this.#placeOf(line.line_id) - this.#at));
    row.append(button);
    return row;
  }

  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.target.matches("button") && [" ", "Enter"].includes(event.key)) return;
    const keys = {
      ArrowDown: 1, ArrowRight: 1, PageDown: 1, " ": 1, ArrowUp: -1, ArrowLeft: -1, PageUp: -1,
      Home: -Infinity, End: Infinity,
    };
    if (event.key === "f") this.#follow(!this.#follows);
    else if (event.key in keys) this.#step(keys[event.key]);
    else return;
    event.preventDefault();
  }

  #swipe() {
    let from = null;
    const stage = byId("stage");
    stage.addEventListener("touchstart", ({ touches }) => (from = touches.length === 1 ? touches[0].clientX : null), { passive: true });
    stage.addEventListener("touchend", ({ changedTouches }) => {
      const by = from === null ? 0 : changedTouches[0].clientX - from;
      if (Math.abs(by) > SWIPE_PX) this.#step(by < 0 ? 1 : -1);
    });
  }
}

function whoOf({ kind, speaker }) {
  return { heading: t`Scene`, note: t`Note`, action: t`Action`, audio: t`Recording` }[kind] ?? speaker ?? "";
}

/** @param {{status: number, message: string}} error */
function ended({ status, message }) {
  if (status === 401) return t`Sign in to the studio on this device first, then open this address again.`;
  if (status === 404) return t`This project isn’t in the studio that this device is signed in to. On a shared studio, open the owner’s address on it first.`;
  return message;
}

function resize(by) {
  let size = 1;
  try {
    size = Number(localStorage.getItem(SIZE_KEY)) || 1;
  } catch { /* a browser that keeps nothing */ }
  size = Math.max(0.5, Math.min(3, size * by));
  document.documentElement.style.setProperty("--scale", size.toFixed(3));
  try {
    localStorage.setItem(SIZE_KEY, size.toFixed(3));
  } catch { /* it is for this page only */ }
}

let awake = null;
let isWanted = false;

/** Keep the screen on while something is read, where the browser can. @param {boolean} wanted */
async function keepAwake(wanted) {
  isWanted = wanted;
  if (!("wakeLock" in navigator)) return;
  if (!wanted || document.hidden) return void release();
  try {
    awake ??= await navigator.wakeLock.request("screen");
    awake.addEventListener("release", () => (awake = null), { once: true });
    if (!isWanted) release();
  } catch { /* the battery is low, or the page isn't in sight */ }
}

function release() {
  awake?.release();
  awake = null;
}

translateTree(document);
followTheme();
document.addEventListener("visibilitychange", () => keepAwake(isWanted));
const page = new TableReadPage(new URLSearchParams(location.search).get("project") ?? "");
Object.assign(window, { tableRead: page });
