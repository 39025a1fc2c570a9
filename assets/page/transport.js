/** The player's controls: read, cancel, play, clock, volume, download. */
import * as api from "./api.js";
import { byId, disclose, setData, setHidden, setText } from "./dom.js";
import { clock, count } from "./format.js";
import { RATE_HZ } from "./scene.js";

const VOLUME_KEY = "tableread.volume";

/** Events: "read", "cancel", "toggle". */
export class Transport extends EventTarget {
  #root = byId("player");
  #read = /** @type {HTMLButtonElement} */ (byId("read"));
  #cancel = /** @type {HTMLButtonElement} */ (byId("cancel"));
  #play = /** @type {HTMLButtonElement} */ (byId("play"));
  #download = /** @type {HTMLButtonElement} */ (byId("download"));
  #volume = /** @type {HTMLInputElement} */ (byId("volume"));

  /** @param {import("./player.js").Player} player */
  constructor(player) {
    super();
    const tell = (name) => () => this.dispatchEvent(new Event(name));
    this.#read.addEventListener("click", tell("read"));
    this.#cancel.addEventListener("click", tell("cancel"));
    this.#play.addEventListener("click", tell("toggle"));
    disclose(this.#download, byId("download-menu"));
    this.#keepVolume(player);
  }

  /** A reading is being asked for. */
  begin() {
    this.#read.disabled = true;
    setData(this.#root, "job", "starting");
    setText(byId("progress"), "Starting…");
  }

  /** The request was refused; the button is free again. */
  refused() {
    this.#read.disabled = false;
    setData(this.#root, "job", "refused");
    setText(byId("progress"), "");
  }

  /** @param {import("./job.js").Job} job @param {number} changed lines since it began */
  showJob(job, changed) {
    const speech = job.segments.filter((segment) => segment.kind !== "silence");
    const failed = speech.filter((segment) => segment.state === "failed").length;
    const made = speech.filter(({ state }) => state === "saved" || state === "generated").length;
    this.#read.disabled = false;
    this.#cancel.disabled = !job.running;
    this.#play.disabled = !job.segments.length;
    this.#download.disabled = made === 0;
    this.#offer(job.id);
    setText(byId("progress"), progress(job, { made, all: speech.length, failed, changed }));
    this.#root.style.setProperty("--made", String(made / Math.max(1, speech.length)));
    setData(this.#root, "job", job.state);
  }

  /** @param {import("./player.js").Player} player @param {object | undefined} segment heard now */
  showPlayer(player, segment) {
    setData(this.#root, "playing", String(player.playing));
    setData(this.#root, "waiting", String(player.waiting));
    setData(this.#root, "segment_idx", String(player.segment_idx));
    this.#play.setAttribute("aria-label", player.playing ? "Pause" : "Play");
    setText(byId("now-speaking"), saying(player, segment));
  }

  /** @param {import("./player.js").Player} player */
  showClock(player) {
    setData(this.#root, "clock_s", player.clock_s.toFixed(3));
    setText(byId("clock-now"), clock(player.clock_s));
    const whole = clock(player.layout.total / RATE_HZ);
    setText(byId("clock-whole"), player.layout.exact ? whole : `≈ ${whole}`);
  }

  focusPlay() {
    this.#play.focus({ preventScroll: true });
  }

  #offer(jobId) {
    for (const link of byId("download-menu").querySelectorAll("a")) {
      link.href = api.exportUrl(jobId, link.dataset.format);
    }
  }

  #keepVolume(player) {
    this.#volume.value = localStorage.getItem(VOLUME_KEY) ?? "1";
    const apply = () => (player.volume = Number(this.#volume.value));
    this.#volume.addEventListener("input", () => {
      apply();
      localStorage.setItem(VOLUME_KEY, this.#volume.value);
    });
    apply();
    setHidden(byId("download-menu"), true);
  }
}

function progress(job, { made, all, failed, changed }) {
  if (changed && !job.running) return `${count(changed, "line")} changed`;
  if (job.state === "lost") return "";
  const failures = failed ? `, ${failed} failed` : "";
  if (job.running) return `${made} of ${all} read${failures}`;
  if (job.state === "cancelled") return `Cancelled at ${made} of ${all}`;
  return failed ? `${made} of ${all} read${failures}` : `All ${all} read`;
}

function saying(player, segment) {
  if (!segment || !player.playing) return "";
  if (player.waiting) return `Waiting for ${segment.speaker ?? "the next line"}…`;
  return segment.speaker ?? "";
}
