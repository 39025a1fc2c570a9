/** A panel over the page: opens, closes, says what went wrong in itself. */
import { setHidden, setText } from "./dom.js";
import { announce } from "./notices.js";

/** Event "closed" after it was closed, by whatever means. */
export class VoiceSheet extends EventTarget {
  #dialog;
  #message;

  /** @param {HTMLDialogElement} dialog with `.sheet-close` and `.sheet-message` */
  constructor(dialog) {
    super();
    this.#dialog = dialog;
    this.#message = dialog.querySelector(".sheet-message");
    dialog.querySelector(".sheet-close").addEventListener("click", () => this.close());
    dialog.addEventListener("close", () => this.dispatchEvent(new Event("closed")));
  }

  get isOpen() {
    return this.#dialog.open;
  }

  open() {
    this.say("");
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#dialog.scrollTop = 0;
  }

  close() {
    this.#dialog.close();
  }

  /** Say something at the head of the panel. @param {string} text "" takes it away */
  say(text, kind = "error") {
    setText(this.#message, text);
    this.#message.dataset.kind = kind;
    setHidden(this.#message, text === "");
    if (text) this.#message.scrollIntoView({ block: "nearest" });
    if (text && kind === "done") announce(text);
  }

  /** Do something, and say why when it was refused; whether it was done. */
  async tries(act) {
    try {
      await act();
      return true;
    } catch (error) {
      if (error.name === "AbortError") return false;
      this.say(error.message);
      return false;
    }
  }
}
