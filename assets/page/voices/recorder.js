/** Sources of a recording: a chosen or dropped file, or the microphone. */
import { Bus } from "../core/bus.js";
import { fromTemplate, setHidden, setText } from "../core/dom.js";
import { formatLength } from "../core/format.js";
import { announce } from "../core/notices.js";
import { t } from "../core/texts.js";
import { setAudioPurpose } from "../playback/audio_clock.js";

const SHOWN_MS = 100;
const AS_IT_IS = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };

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
      setAudioPurpose("playback");
      const reason = navigator.mediaDevices
        ? t`Can’t use the microphone: ${fault.message}. Allow it for this page, or choose a file.`
        : t`The microphone works only on this machine or over https. Choose a file instead.`;
      this.events.emit("fault", new Error(reason));
    }
  }

  async #begin() {
    setAudioPurpose("play-and-record");
    const stream = await navigator.mediaDevices.getUserMedia({ audio: AS_IT_IS });
    const recorder = new MediaRecorder(stream);
    const recording = { recorder, stream, pieces: [], wanted: true, meter: loudness(stream) };
    recorder.addEventListener("dataavailable", ({ data }) => recording.pieces.push(data));
    recorder.addEventListener("stop", () => this.#finished(recording));
    this.#recording = recording;
    recorder.start();
    recording.began = performance.now();
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
    this.#part("meter").value = this.#recording.meter.level();
    setTimeout(() => this.#tick(), SHOWN_MS);
  }

  #end() {
    const recording = this.#recording;
    this.#recording = null;
    this.#show(false);
    if (recording && recording.recorder.state !== "inactive") recording.recorder.stop();
  }

  #finished({ recorder, stream, pieces, wanted, meter }) {
    stream.getTracks().forEach((track) => track.stop());
    meter.close();
    setAudioPurpose("playback");
    if (!wanted) return;
    const blob = new Blob(pieces, { type: recorder.mimeType });
    this.events.emit("sound", { blob, name: t`Your recording` });
  }

  #show(recording) {
    const button = this.#part("record");
    button.setAttribute("aria-pressed", String(recording));
    setText(button.querySelector(".source-word"), recording ? t`Stop` : t`Record`);
    setHidden(this.#part("live"), !recording);
    delete this.#root.dataset.seconds;
  }
}

/** The current level of a stream, 0 to 1. */
function loudness(stream) {
  const context = new AudioContext();
  const analyser = context.createAnalyser();
  const samples = new Float32Array(analyser.fftSize);
  context.createMediaStreamSource(stream).connect(analyser);
  const level = () => {
    analyser.getFloatTimeDomainData(samples);
    const power = samples.reduce((sum, one) => sum + one * one, 0) / samples.length;
    return Math.max(0, Math.min(1, 1 + Math.log10(power + 1e-9) / 6));
  };
  return { level, close: () => context.close() };
}
