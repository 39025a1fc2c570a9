/** Acting a line: one's own recording, said again in a speaker's voice. */
import * as api from "./voiceapi.js";
import { byId, setHidden, setText } from "./dom.js";
import { VoiceSource } from "./voicesource.js";

export class VoiceAct {
  #sheet;
  #source = new VoiceSource(byId("voice-act-source"), "the line you act");
  #sound;
  #speaker = null;
  #made = null;
  #stop = null;

  /** @param {import("./voicesheet.js").VoiceSheet} sheet @param {import("./voicesound.js").VoiceSound} sound */
  constructor(sheet, sound) {
    this.#sheet = sheet;
    this.#sound = sound;
    this.#source.addEventListener("begin", () => sound.hush());
    this.#source.addEventListener("fault", ({ detail }) => sheet.say(detail.message));
    this.#source.addEventListener("sound", ({ detail }) => this.#convert(detail.blob));
    byId("voice-act-stop").addEventListener("click", () => this.#stop?.abort());
    const listen = byId("voice-act-listen");
    listen.addEventListener("click", () => sound.toggle(listen, () => this.#made));
  }

  /** Begin anew, for a speaker. */
  begin(speaker) {
    this.leave();
    this.#speaker = speaker;
  }

  /** Drop what was recorded, made, or is being made. */
  leave() {
    this.#source.leave();
    this.#stop?.abort();
    this.#show(null, "");
  }

  async #convert(recording) {
    this.#stop?.abort();
    const stop = (this.#stop = new AbortController());
    this.#sheet.say("");
    this.#show(null, "The line is being said again in this voice…");
    setHidden(byId("voice-act-stop"), false);
    const id = this.#speaker.speaker_id;
    let made = null;
    await this.#sheet.tries(async () => (made = await api.act(id, recording, stop.signal)));
    if (stop !== this.#stop) return;
    this.#show(made, made ? "The line is ready." : "");
  }

  #show(made, state) {
    this.#sound.hush();
    this.#made = made;
    const save = /** @type {HTMLAnchorElement} */ (byId("voice-act-save"));
    if (save.href) URL.revokeObjectURL(save.href);
    save.removeAttribute("href");
    if (made) {
      save.href = URL.createObjectURL(made);
      save.download = `${this.#speaker.name.replace(/[^\p{L}\p{N} _-]/gu, "_")}.wav`;
    }
    setHidden(byId("voice-acted"), !made);
    setHidden(byId("voice-act-stop"), true);
    setText(byId("voice-act-state"), state);
  }
}
