/** The microphone: opened, measured, recorded; and what to say where it can't be used. */
import { t } from "../core/texts.js";
import { setAudioPurpose } from "../playback/audio_clock.js";

const AS_IT_IS = { echoCancellation: false, noiseSuppression: false, autoGainControl: false };

export class Microphone {
  #stream;
  #meter;
  #recorder;
  #pieces = [];

  /** @param {MediaStream} stream */
  constructor(stream) {
    this.#stream = stream;
    this.#meter = loudness(stream);
    this.#recorder = new MediaRecorder(stream);
    this.#recorder.addEventListener("dataavailable", ({ data }) => this.#pieces.push(data));
    /** Resolves when a recording ends, also because the microphone was disconnected. */
    this.stopped = new Promise((done) => this.#recorder.addEventListener("stop", done, { once: true }));
  }

  /** The current level, 0 to 1. */
  get level() {
    return this.#meter.level();
  }

  /** Record from now on. Throws if the microphone was disconnected. */
  start() {
    if (!this.#stream.active) throw new Error(t`The microphone was disconnected.`);
    this.#recorder.start();
  }

  /** Stop recording, if it hasn't ended. @returns {Promise<Blob>} what was recorded */
  async stop() {
    if (this.#recorder.state !== "inactive") this.#recorder.stop();
    await this.stopped;
    this.close();
    return new Blob(this.#pieces, { type: this.#recorder.mimeType });
  }

  /** Release the microphone; a recording that wasn't stopped is gone. */
  close() {
    if (this.#recorder.state !== "inactive") this.#recorder.stop();
    this.#stream.getTracks().forEach((track) => track.stop());
    this.#meter.close();
    setAudioPurpose("playback");
  }
}

/** Ask for the microphone. @returns {Promise<Microphone>} rejected with an error that helps */
export async function openMicrophone() {
  try {
    setAudioPurpose("play-and-record");
    return new Microphone(await navigator.mediaDevices.getUserMedia({ audio: AS_IT_IS }));
  } catch (fault) {
    setAudioPurpose("playback");
    throw new Error(explain(fault));
  }
}

/** @param {Error} fault of the browser @returns {string} what happened and what helps */
function explain(fault) {
  if (!navigator.mediaDevices) {
    return t`The microphone works only on this machine or over https. Choose a file instead.`;
  }
  const known = {
    NotAllowedError: t`This page may not use the microphone. Allow it in the browser’s address bar, or choose a file.`,
    NotFoundError: t`There is no microphone. Connect one, or choose a file.`,
    NotReadableError: t`Another program uses the microphone. Close it and try again, or choose a file.`,
  };
  return known[fault.name] ?? t`Can’t use the microphone: ${fault.message}. Choose a file instead.`;
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
