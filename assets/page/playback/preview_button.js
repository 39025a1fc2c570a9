/** Previews: one sound at a time, started and stopped by its button. */
import { Bus } from "../core/bus.js";
import { followVolume } from "./audio_clock.js";

export class PreviewButton {
  /** @type {Bus<import("../core/types").PreviewEvents>} */
  events = new Bus();
  #audio = followVolume(new Audio());
  #button = null;
  #asked = 0;
  #url = null;
  /** @type {Promise<Blob>[]} */
  #rest = [];
  /** @type {AbortController | null} */
  #fetching = null;

  constructor() {
    this.#audio.addEventListener("ended", () => this.#goOn());
  }

  /**
   * Play the audio of `find`, or stop it if this button started it. Of several parts each is played when it is there.
   * @param {HTMLElement} button @param {(signal: AbortSignal) => Promise<string|Blob|Promise<Blob>[]>|string} find
   */
  async toggle(button, find) {
    const again = this.#button === button;
    this.hush();
    if (again) return;
    const asked = (this.#asked += 1);
    const fetching = (this.#fetching = new AbortController());
    this.#show(button);
    this.#unlock();
    try {
      const found = await find(fetching.signal);
      const first = Array.isArray(found) ? await found[0] : found;
      if (asked !== this.#asked) return;
      this.#rest = Array.isArray(found) ? found.slice(1) : [];
      await this.#play(first);
    } catch (fault) {
      if (asked === this.#asked) this.hush();
      if (fault.name === "AbortError") return;
      this.events.emit("fault", fault);
    }
  }

  /** The next part, if there is one. */
  async #goOn() {
    const [asked, next] = [this.#asked, this.#rest.shift()];
    const found = await next?.catch(() => null);
    if (asked !== this.#asked) return;
    if (found) await this.#play(found).catch(() => this.hush());
    else this.hush();
  }

  /** Stop the sound that is playing or loading. */
  hush() {
    this.#asked += 1;
    this.#rest = [];
    this.#fetching?.abort();
    this.#fetching = null;
    this.#audio.pause();
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.#url = null;
    this.#button?.setAttribute("aria-pressed", "false");
    this.#button?.removeAttribute("aria-busy");
    this.#button = null;
  }

  /** Called in the press's own event: Safari refuses audio that starts more than a few seconds after it. */
  #unlock() {
    this.#audio.removeAttribute("src");
    this.#audio.load();
  }

  #show(button) {
    this.#button = button;
    button.setAttribute("aria-pressed", "true");
    button.setAttribute("aria-busy", "true");
  }

  #play(found) {
    if (this.#url) URL.revokeObjectURL(this.#url);
    this.#url = found instanceof Blob ? URL.createObjectURL(found) : null;
    this.#audio.src = this.#url ?? found;
    this.#button.removeAttribute("aria-busy");
    return this.#audio.play();
  }
}
