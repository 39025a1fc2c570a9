/** Record a line: countdown, script, level; each recording is a take, in the character's voice where the engine can. */
import { bus } from "../core/bus.js";
import { byId, safeColour, setHidden, setText } from "../core/dom.js";
import { formatLength } from "../core/format.js";
import { localStore } from "../core/local_store.js";
import { announce, showError } from "../core/notices.js";
import { t } from "../core/texts.js";
import { takeIssues } from "../document/document.js";
import { openMicrophone } from "../voices/microphone.js";
import { Sheet } from "../voices/sheet.js";

/** @import { Line, Parts } from "../core/types" */

const ACTED_KEY = "tableread.acted";
const COUNT = 3;
const COUNT_MS = 1000;
const SHOWN_MS = 100;
const LONGEST_S = 295; // the studio takes 300, and a recording is longer than its clock when it is stopped
const LABELS = { idle: t`Record`, opening: t`Cancel`, counting: t`Cancel`, recording: t`Stop`, sending: t`Cancel` };

export class LineRecorder {
  #dialog = byId("record-panel");
  #sheet = new Sheet(this.#dialog, () => this.#mayClose());
  #parts;
  #lineId = null;
  /** @type {"idle" | "opening" | "counting" | "recording" | "sending"} */
  #state = "idle";
  // Counts what was begun: whatever an earlier one still does is of no account.
  #begun = 0;
  #microphone = null;
  #began_ms = 0;
  #canAct = false;
  /** What was recorded and isn't a take yet. @type {{blob: Blob, lineId: string, isCut: boolean} | null} */
  #unsent = null;
  /** @type {AbortController | null} */
  #sending = null;

  /** @param {Pick<Parts, "project" | "selection" | "lines" | "player" | "playback">} parts */
  constructor(parts) {
    this.#parts = parts;
    bus.on("library.loaded", ({ offer }) => (this.#canAct = offer.voice_conversion));
    bus.on("selection.changed", () => this.#offer());
    bus.on("project.changed", () => this.#offer());
    bus.on("project.closing", () => this.#sheet.isOpen && this.#sheet.close());
    byId("lines").addEventListener("click", ({ target }) => {
      if (target.closest(".line-record")) this.open(parts.lines.lineOf(target));
    });
    this.#listen();
  }

  #listen() {
    const presses = {
      go: () => this.#press(),
      listen: () => this.#parts.playback.playLine(this.#lineId),
      resend: () => this.#send(this.#acted),
      plain: () => this.#send(false),
      choose: () => byId("record-file").click(),
      previous: () => this.#step(-1),
      next: () => this.#step(1),
    };
    for (const [name, act] of Object.entries(presses)) byId(`record-${name}`).addEventListener("click", act);
    byId("act-record").addEventListener("click", () => this.open(this.#parts.selection.current));
    byId("record-acted").addEventListener("change", ({ target }) => localStore.set(ACTED_KEY, String(target.checked)));
    byId("record-file").addEventListener("change", ({ target }) => {
      const [file] = target.files;
      target.value = ""; // so that the same file can be chosen again
      if (file) this.#keep(file);
    });
    this.#dialog.addEventListener("keydown", (event) => this.#key(event));
    this.#sheet.events.on("closed", () => this.#leave());
    addEventListener("beforeunload", (event) => this.#isUnkept && event.preventDefault());
  }

  /** Whether something was said that is no take yet, so that the browser asks before it leaves. */
  get #isUnkept() {
    return this.#unsent !== null || this.#state === "recording" || this.#state === "sending";
  }

  get #line() {
    return this.#parts.project.line(this.#lineId);
  }

  get #acted() {
    return this.#canAct && byId("record-acted").checked;
  }

  /** Open the microphone's panel for a line that is spoken. @param {string | null} lineId */
  open(lineId) {
    const line = this.#parts.project.line(lineId);
    if (line?.kind !== "speech") return announce(t`Select a speech line first.`);
    this.#parts.player.stop();
    byId("record-acted").checked = localStore.get(ACTED_KEY) !== "false";
    this.#sheet.open();
    this.#show(lineId);
    byId("record-go").focus();
    return undefined;
  }

  #offer() {
    const { selection, project } = this.#parts;
    const [lineId] = selection.ids.length === 1 ? selection.ids : [null];
    setHidden(byId("act-record"), project.line(lineId)?.kind !== "speech");
    if (this.#sheet.isOpen) this.#showLine();
  }

  #show(lineId) {
    this.#lineId = lineId;
    this.#unsent = null;
    this.#sheet.say("");
    setText(byId("record-state"), "");
    this.#turn("idle");
    this.#showLine();
  }

  #showLine() {
    const line = this.#line;
    if (!line) return this.#sheet.close();
    const { order } = this.#parts.project.view;
    const [before, after] = [this.#neighbour(-1, isSaid), this.#neighbour(1, isSaid)];
    setText(byId("record-title"), line.speaker || t`No speaker`);
    this.#dialog.querySelector(".swatch").style.background = safeColour(this.#parts.lines.colour(line.speaker));
    setText(byId("record-before"), before ? `${before.speaker}: ${before.text}` : "");
    setText(byId("record-text"), line.text || t`This line has no text.`);
    setText(byId("record-after"), after ? `${after.speaker}: ${after.text}` : "");
    setHidden(byId("record-acted-part"), !this.#canAct);
    setText(byId("record-acted-word"), t`Convert to ${line.speaker}’s voice`);
    byId("record-previous").disabled = this.#isBusy || !this.#neighbour(-1, isSaid, order);
    byId("record-next").disabled = this.#isBusy || !this.#neighbour(1, isSaid, order);
    setHidden(byId("record-listen"), this.#state !== "idle" || !line.take);
    byId("record-go").disabled = Boolean(line.locked);
    if (line.locked) setText(byId("record-state"), t`This line is locked. Unlock it to record it.`);
    return undefined;
  }

  get #isBusy() {
    return this.#state !== "idle";
  }

  /** The nearest line before or after this one that fits. */
  #neighbour(by, fits, order = this.#parts.project.view.order) {
    for (let at = order.indexOf(this.#lineId) + by; order[at]; at += by) {
      const line = this.#parts.project.line(order[at]);
      if (line && fits(line)) return line;
    }
    return null;
  }

  #step(by) {
    const line = this.#isBusy ? null : this.#neighbour(by, isSaid);
    if (!line) return;
    this.#parts.selection.go(line.line_id);
    this.#show(line.line_id);
    byId("record-go").focus();
  }

  #key(event) {
    if (event.target.matches("input") || event.ctrlKey || event.metaKey || event.altKey) return;
    const keys = { r: () => this.#press(), ArrowUp: () => this.#step(-1), ArrowDown: () => this.#step(1) };
    const act = keys[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  /** Escape stops what goes on, and closes the panel only then. */
  #mayClose() {
    if (!this.#isBusy) return true;
    this.#cancel();
    return false;
  }

  #press() {
    if (this.#state === "recording") return this.#finish();
    if (this.#isBusy) return this.#cancel();
    return this.#line?.locked ? undefined : this.#begin();
  }

  async #begin() {
    const begun = (this.#begun += 1);
    const isOver = () => begun !== this.#begun;
    this.#parts.player.stop();
    this.#unsent = null;
    this.#sheet.say("");
    this.#turn("opening");
    setText(byId("record-state"), t`Waiting for the microphone…`);
    try {
      const microphone = await openMicrophone();
      if (isOver()) return microphone.close();
      this.#microphone = microphone;
      this.#turn("counting");
      this.#tick(begun);
      for (let left = COUNT; left && !isOver(); left -= 1) {
        setText(byId("record-count"), String(left));
        setText(byId("record-state"), t`Recording starts in ${left}`);
        await new Promise((done) => setTimeout(done, COUNT_MS));
      }
      if (isOver()) return undefined;
      microphone.start();
      microphone.stopped.then(() => {
        if (!isOver() && this.#state === "recording") void this.#finish(true);
      });
      this.#began_ms = performance.now();
      this.#turn("recording");
      setText(byId("record-state"), t`Recording.`);
    } catch (error) {
      if (isOver()) return undefined;
      this.#microphone?.close();
      this.#microphone = null;
      this.#turn("idle");
      setText(byId("record-state"), "");
      this.#sheet.say(error.message);
    }
    return undefined;
  }

  #tick(begun) {
    if (begun !== this.#begun || !this.#microphone) return;
    byId("record-meter").value = this.#microphone.level;
    if (this.#state === "recording") {
      const seconds = (performance.now() - this.#began_ms) / 1000;
      setText(byId("record-time"), formatLength(seconds));
      this.#dialog.dataset.seconds = String(Math.floor(seconds));
      if (seconds >= LONGEST_S) return void this.#finish();
    }
    setTimeout(() => this.#tick(begun), SHOWN_MS);
  }

  /** @param {boolean} [isCut] whether the microphone was disconnected */
  async #finish(isCut = false) {
    const microphone = this.#microphone;
    this.#microphone = null;
    this.#turn("sending");
    await this.#keep(await microphone.stop(), isCut);
  }

  /** Make a take of a recording. @param {Blob} blob @param {boolean} [isCut] */
  async #keep(blob, isCut = false) {
    this.#unsent = { blob, lineId: this.#lineId, isCut };
    await this.#send(this.#acted);
  }

  async #send(acted) {
    const { blob, lineId, isCut } = this.#unsent;
    const begun = (this.#begun += 1);
    const sending = (this.#sending = new AbortController());
    this.#sheet.say("");
    this.#turn("sending");
    setText(byId("record-state"), acted ? t`Converting to ${this.#line?.speaker}’s voice…` : t`Saving the take…`);
    try {
      await this.#parts.project.addRecording(lineId, blob, acted, sending.signal);
      if (begun !== this.#begun) return;
      this.#unsent = null;
      this.#turn("idle");
      this.#kept(isCut);
    } catch (error) {
      if (error.name === "AbortError") return;
      if (begun === this.#begun) this.#failed(error, acted);
      else showError(t`Couldn’t cancel it`, error);
    }
  }

  #kept(isCut) {
    const { take, n_takes: takes } = this.#line ?? {};
    const doubts = [...(isCut ? [t`The microphone was disconnected.`] : []), ...(take ? takeIssues(take) : [])];
    setText(byId("record-state"), t`Saved as take ${takes}.`);
    if (doubts.length) this.#sheet.say(t`Saved, but: ${doubts.join(" ")}`);
    byId("record-go").focus();
  }

  #failed(error, acted) {
    this.#turn("idle");
    setText(byId("record-state"), "");
    this.#sheet.say(error.message);
    // What the studio refuses for itself is refused again; what it couldn't do now, it may do later.
    const isOfNoUse = error.kind === "AudioRejected";
    setHidden(byId("record-resend"), isOfNoUse);
    setHidden(byId("record-plain"), isOfNoUse || !acted);
    if (isOfNoUse) this.#unsent = null;
  }

  #cancel() {
    this.#begun += 1;
    this.#microphone?.close();
    this.#microphone = null;
    this.#sending?.abort();
    this.#unsent = null;
    this.#turn("idle");
    setText(byId("record-state"), t`Cancelled.`);
  }

  #leave() {
    if (this.#isBusy) this.#cancel();
    this.#unsent = null;
    this.#parts.selection.focus();
  }

  #turn(state) {
    this.#state = state;
    this.#dialog.dataset.state = state;
    delete this.#dialog.dataset.seconds;
    const again = state === "idle" && this.#line?.n_takes ? t`Record again` : LABELS[state];
    setText(byId("record-go").querySelector(".label"), again);
    byId("record-go").setAttribute("aria-pressed", String(state === "recording"));
    setText(byId("record-count"), "");
    setText(byId("record-time"), "");
    byId("record-meter").value = 0;
    for (const name of ["resend", "plain"]) setHidden(byId(`record-${name}`), true);
    byId("record-choose").disabled = state !== "idle";
    if (this.#lineId) this.#showLine();
  }
}

/** @param {Line} line */
function isSaid({ kind }) {
  return kind === "speech";
}
