/** The player's controls: play, generate, stop, loop, speed, clock, volume. */
import { bus } from "../core/bus.js";
import { byId, disclose, setData, setText } from "../core/dom.js";
import { formatClock } from "../core/format.js";
import { localStore } from "../core/local_store.js";
import { t } from "../core/texts.js";
import { isMissing, RATE_HZ } from "../document/document.js";
import { setVolume } from "./audio_clock.js";

/** @import { Line } from "../core/types" */

const VOLUME_KEY = "tableread.volume";

/** Emits the `transport.*` events. */
export class Transport {
  #root = byId("player");
  #play = byId("play");
  #generate = byId("generate");
  #stop = byId("stop");
  #isRendering = false;
  #volume = byId("volume");

  /** @param {import("./player.js").Player} player */
  constructor(player) {
    this.#play.addEventListener("click", () => bus.emit("transport.toggle"));
    this.#generate.addEventListener("click", () => bus.emit("transport.generate"));
    this.#stop.addEventListener("click", () => bus.emit("transport.stop"));
    byId("loop").addEventListener("click", ({ currentTarget }) => {
      player.loop = !player.loop;
      currentTarget.setAttribute("aria-pressed", String(player.loop));
    });
    byId("speed").addEventListener("change", ({ target }) => player.setRate(Number(target.value)));
    this.#keepVolume(player);
    disclose(byId("extras-open"), byId("extras")); // a window with room for them shows them in any case
  }

  /** A render is being requested. */
  begin() {
    this.#generate.disabled = true;
    setData(this.#root, "job", "starting");
  }

  /** @param {import("../document/project.js").Project} project @param {{text: string, share: number}} progress */
  showJob(project, { text, share }) {
    this.#play.disabled = !project.lines.length;
    this.#generate.disabled = project.rendering || !project.lines.some(isMissing);
    this.#isRendering = project.rendering;
    byId("download").disabled = !project.lines.some(({ take }) => take);
    setText(byId("progress"), text);
    this.#root.style.setProperty("--made", String(share));
    setData(this.#root, "job", project.job?.state ?? "none");
    this.#showStop();
  }

  /** There while something is made or played; its place stays empty otherwise, so that nothing moves. */
  #showStop() {
    setData(this.#root, "runs", String(this.#isRendering || this.#root.dataset.playing === "true"));
  }

  /** @param {import("./player.js").Player} player @param {Line | undefined} line at the play-head */
  showPlayer(player, line) {
    setData(this.#root, "playing", String(player.playing));
    setData(this.#root, "waiting", String(player.waiting));
    setData(this.#root, "line", player.line_id ?? "");
    this.#showStop();
    setText(byId("now-speaking"), nowSpeaking(player, line));
  }

  /** @param {import("./player.js").Player} player */
  /** While it waits for a line's sound, lines before it may get theirs and move it: the clock stands still. */
  showClock(player) {
    setData(this.#root, "clock_s", player.clock_s.toFixed(3));
    if (!player.waiting) setText(byId("clock-now"), formatClock(player.clock_s));
    const whole = formatClock(player.playlist.total / RATE_HZ);
    setText(byId("clock-whole"), player.playlist.exact ? whole : `≈ ${whole}`);
  }

  focusPlay() {
    this.#play.focus({ preventScroll: true });
  }

  #keepVolume(player) {
    this.#volume.value = localStore.get(VOLUME_KEY) ?? "1";
    const apply = () => {
      player.volume = Number(this.#volume.value);
      setVolume(Number(this.#volume.value));
    };
    this.#volume.addEventListener("input", () => {
      apply();
      localStore.set(VOLUME_KEY, this.#volume.value);
    });
    apply();
  }
}

function nowSpeaking(player, line) {
  if (!line || !player.playing) return "";
  if (player.waiting) return t`Waiting for ${line.speaker ?? t`the next line`}…`;
  return line.speaker ?? "";
}
