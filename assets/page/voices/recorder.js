/** Sources of a recording: a chosen or dropped file, or the microphone. */
import { Bus } from "../core/bus.js";
import { fromTemplate, setHidden, setText } from "../core/dom.js";
import { formatLength } from "../core/format.js";
import { announce } from "../core/notices.js";
import { t } from "../core/texts.js";
import { openMicrophone } from "./microphone.js";

const SHOWN_MS = 100;

export class Recorder {
  /** @type {Bus<import("../core/types").RecorderEvents>} */
  events = new Bus();
  #root;
  #recording = null;

  /** @param {HTMLElement} place is filled @param {string} what the recording is of, for readers */
  constructor(place, what) {
    this.#root = fromTemplate("source-template");
    place.replaceChildren(this.#root);
    const field = this.#part("file");
    field.ariaLabel = t`File of ${what}`;
    this.#part("record").ariaLabel = t`Record ${what}`;
    this.#part("choose").addEventListener("click", () => field.click());
    field.addEventListener("change", () => {
      this.#take(field.files[0]);
      field.value = ""; // so that the same file can be chosen again
    });
    this.#part("record").addEventListener("click", () => this.#turn());
    this.#root.addEventListener("dragover", (event) => event.preventDefault());
    this.#root.addEventListener("drop", (event) => {
      event.preventDefault();
      this.#take(event.dataTransfer.files[0]);
    });
  }

  /** Stop a recording and discard it. */
  leave() {
    if (this.#recording) this.#recording.wanted = false;
    this.#end();
  }

  focus() {
    this.#part("choose").focus();
  }

  #part(name) {
    return this.#root.querySelector(`.source-${name}`);
  }

  #take(file) {
    if (file) this.events.emit("sound", { blob: file, name: file.name });
  }

  async #turn() {
    if (this.#recording) return this.#end();
    try {
      await this.#begin();
    } catch (fault) {
      this.events.emit("fault", fault);
    }
  }

  async #begin() {
    const microphone = await openMicrophone();
    this.#recording = { microphone, wanted: true, began: performance.now() };
    microphone.start();
    microphone.stopped.then(() => this.#recording?.microphone === microphone && this.#end());
    this.#show(true);
    this.events.emit("begin");
    announce(t`Recording.`);
    this.#tick();
  }

  #tick() {
    if (!this.#recording) return;
    const seconds = (performance.now() - this.#recording.began) / 1000;
    setText(this.#part("time"), formatLength(seconds));
    this.#root.dataset.seconds = String(Math.floor(seconds));
    this.#part("meter").value = this.#recording.microphone.level;
    setTimeout(() => this.#tick(), SHOWN_MS);
  }

  async #end() {
    const recording = this.#recording;
    this.#recording = null;
    this.#show(false);
    if (!recording) return;
    const blob = await recording.microphone.stop();
    if (recording.wanted) this.events.emit("sound", { blob, name: t`Your recording` });
  }

  #show(recording) {
    const button = this.#part("record");
    button.setAttribute("aria-pressed", String(recording));
    setText(button.querySelector(".source-word"), recording ? t`Stop` : t`Record`);
    setHidden(this.#part("live"), !recording);
    delete this.#root.dataset.seconds;
  }
}
