/** The dialog being read: joins the project, its rows, the player and the controls. */
import { answerTo } from "./asking.js";
import { byId, setText } from "./dom.js";
import { Following } from "./following.js";
import { count } from "./format.js";
import { announce, notice, refused } from "./notices.js";
import { isMissing, isPending } from "./line_states.js";
import { isAudible } from "./playlist.js";

const MUTE = "The browser gives this page no sound output. Connect a loudspeaker or headphones, or allow sound for this page.";

/** How many lines are made again without a question. */
const ASKED_ABOVE = 20;

export class Reading {
  #parts;
  #ticking = false;
  #told = false;

  /** @param {object} parts project, player, lines, selection, timeline, transport */
  constructor(parts) {
    this.#parts = parts;
    const { project, player, timeline, transport, lines } = parts;
    this.following = new Following(lines);
    project.addEventListener("change", () => this.show());
    project.addEventListener("job", () => this.#showJob());
    player.addEventListener("change", () => this.#showPlayer());
    player.addEventListener("end", () => this.#showClock());
    player.addEventListener("mute", () => notice("sound", { kind: "warning", title: "Nothing can be heard.", text: MUTE }));
    timeline.addEventListener("seek", ({ detail }) => this.#seek(detail));
    transport.addEventListener("read", () => this.read());
    transport.addEventListener("cancel", () => this.cancel());
    transport.addEventListener("toggle", () => this.toggle());
  }

  /** Make what is missing or outdated, and hear all from the beginning. */
  async read() {
    const { player, project } = this.#parts;
    player.unlock();
    await project.flush();
    const [first] = project.view.order;
    if (first) await this.#hear(first, { make: true });
  }

  /** Make what is missing or outdated, silently. */
  async make() {
    const { project, player } = this.#parts;
    if (!(await project.agree())) return;
    await this.#try(() => project.render(null, { listenFrom: player.line_id }));
  }

  /** Play or pause; what is missing from the play-head on is made. */
  toggle() {
    const { player } = this.#parts;
    if (player.playing) return player.stop();
    return this.playOn(player.line_id, { keepPlace: true });
  }

  /** Play one line, which is made when it is missing; or pause it. */
  playLine(lineId) {
    const { player, project } = this.#parts;
    if (!project.line(lineId)) return undefined;
    if (player.playing && player.line_id === lineId) return player.stop();
    return this.#hear(lineId, { until: lineId, make: isMissing(project.line(lineId)) });
  }

  /** Play from a line to the end. */
  playOn(lineId, { keepPlace = false } = {}) {
    const { project } = this.#parts;
    if (!lineId) return undefined;
    const { order } = project.view;
    const rest = order.slice(order.indexOf(lineId)).map((id) => project.line(id));
    return this.#hear(lineId, { make: rest.some(isMissing), lineIds: idsOf(rest.filter(isMissing)), keepPlace });
  }

  /** Another take of lines, with a seed of its own; a single one is heard. @param {string[]} lineIds */
  async again(lineIds) {
    const { project, player } = this.#parts;
    const speech = lineIds.filter((id) => project.line(id)?.kind === "speech" && !project.line(id).locked);
    if (!speech.length) return announce("Nothing here can be made again: locked or no speech.");
    if (speech.length > ASKED_ABOVE && !(await isMeant(speech.length))) return undefined;
    const single = speech.length === 1 ? speech[0] : null;
    player.stop();
    if (single) player.unlock();
    const begun = await this.#try(() => project.render(speech, { again: true, listenFrom: speech[0] }));
    if (begun && single) await player.playFrom(single, single);
    return undefined;
  }

  async cancel() {
    await this.#try(() => this.#parts.project.cancel());
  }

  /** Move the play-head by lines. @param {number} by -1 or 1 */
  step(by) {
    const { player } = this.#parts;
    const next = player.playlist.lines[player.playlist.indexOf(player.line_id) + by];
    if (next) this.placeAt(next.line_id);
  }

  placeAt(lineId) {
    return this.#seek(this.#parts.player.playlist.startOf(lineId));
  }

  async #hear(lineId, { until = null, make = false, lineIds = null, keepPlace = false }) {
    const { player, project, transport } = this.#parts;
    player.unlock();
    if (make && !until && !(await project.agree())) return;
    this.following.resume();
    if (!keepPlace) player.stop();
    if (make) {
      transport.begin();
      const wanted = until ? [until] : lineIds;
      if (!(await this.#try(() => project.render(wanted, { listenFrom: lineId })))) return;
      announce(until ? "Reading the line." : "Reading the scene.");
    }
    if (keepPlace) return player.play();
    if (!make) this.#focus(lineId);
    await player.playFrom(lineId, until);
  }

  /** @returns {Promise<boolean>} whether it went well */
  async #try(act) {
    try {
      await act();
      return true;
    } catch (error) {
      refused("It can't be read", error);
      return false;
    } finally {
      this.#showJob();
    }
  }

  async #seek(place) {
    const { player } = this.#parts;
    this.following.resume();
    await player.seek(place);
    this.#focus(player.line_id);
    this.#showClock();
  }

  /** Tell the studio what is listened to, so that it is made first. */
  #focus(lineId) {
    const { project } = this.#parts;
    const line = project.line(lineId);
    if (!line || !project.rendering || isAudible(line)) return;
    project.focus(lineId).catch((error) => refused("The order stays", error));
  }

  /** Lay out what the project holds now. */
  show() {
    const { project, player, timeline, lines } = this.#parts;
    player.refresh(project.lines);
    timeline.show(player.playlist, (speaker) => lines.colour(speaker));
    this.#showJob();
    this.#showClock();
  }

  #showJob() {
    const { project, transport } = this.#parts;
    const told = progress(project);
    transport.showJob(project, told);
    if (this.#told && !project.rendering) announce(told.text);
    this.#told = project.rendering;
  }

  #showPlayer() {
    const { player, project, transport, lines } = this.#parts;
    if (player.playing) notice("sound");
    transport.showPlayer(player, project.line(player.line_id));
    const sounding = player.playing ? player.line_id : null;
    const reveal = player.playing && this.following.free;
    lines.follow(player.playing || player.place ? player.line_id : null, { reveal });
    lines.sounding(sounding);
    this.following.hear(sounding);
    this.#showClock();
  }

  #showClock() {
    const { player, transport, timeline } = this.#parts;
    transport.showClock(player);
    timeline.move(player.place);
    if (!player.playing || this.#ticking) return;
    this.#ticking = true;
    requestAnimationFrame(() => {
      this.#ticking = false;
      this.#showClock();
    });
  }
}

/** Whether so many lines are really to be made again. @returns {Promise<boolean>} */
async function isMeant(lines) {
  const dialog = /** @type {HTMLDialogElement} */ (byId("again-confirm"));
  setText(byId("again-confirm-title"), `Make ${count(lines, "line")} again?`);
  return (await answerTo(dialog, "keep")) === "make";
}

function idsOf(lines) {
  return lines.map(({ line_id: lineId }) => lineId);
}

/** What the whole amounts to. @returns {{text: string, share: number}} */
function progress(project) {
  const spoken = project.lines.filter(({ kind }) => kind !== "silence");
  const ready = spoken.filter(({ state }) => state === "ready").length;
  const failed = spoken.filter(({ state }) => state === "failed").length;
  const pending = spoken.filter(isPending).length;
  const share = spoken.length ? ready / spoken.length : 0;
  const failures = failed ? `, ${failed} failed` : "";
  if (!spoken.length) return { text: "", share };
  if (project.rendering) return { text: `${ready} of ${spoken.length} ready, ${pending} to go${failures}`, share };
  if (ready === spoken.length) return { text: `All ${spoken.length} ready`, share };
  const missing = spoken.filter(isMissing).length - failed;
  return { text: `${missing ? `${count(missing, "line")} to read` : `${ready} ready`}${failures}`, share };
}
