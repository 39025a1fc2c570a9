/** A panel over the page: opens, closes, and shows its own errors. */
import { Bus } from "../core/bus.js";
import { askDialog, byId, focusedElement, setHidden, setText } from "../core/dom.js";
import { announce } from "../core/notices.js";

/** @import { PageElement } from "../core/types" */

export class Sheet {
  /** @type {Bus<import("../core/types").SheetEvents>} */
  events = new Bus();
  #dialog;
  #message;
  #shown = false;
  #mayClose;

  /**
   * @param {PageElement} dialog with `.sheet-close` and `.sheet-message`
   * @param {() => boolean} mayClose called before the user closes it, to ask if something would be lost
   */
  constructor(dialog, mayClose = () => true) {
    this.#mayClose = mayClose;
    this.#dialog = dialog;
    this.#message = dialog.querySelector(".sheet-message");
    dialog.querySelector(".sheet-close").addEventListener("click", () => this.#leave());
    dialog.addEventListener("cancel", (event) => {
      if (event.target === dialog) this.#cancel(event); // cancelling a file chooser fires this event, too
    });
    dialog.addEventListener("keydown", (event) => event.key === "Escape" && this.#cancel(event));
    dialog.addEventListener("close", () => dialog.open || this.#ended());
  }

  #cancel(event) {
    event.preventDefault();
    this.#leave();
  }

  #leave() {
    if (this.#dialog.open && this.#mayClose()) this.close();
  }

  get isOpen() {
    return this.#dialog.open;
  }

  open() {
    this.say("");
    if (!this.#dialog.open) this.#dialog.showModal();
    this.#shown = true;
    this.#dialog.scrollTop = 0;
  }

  close() {
    focusedElement()?.closest("dialog.sheet input, dialog.sheet textarea")?.blur(); // what was typed counts before it is closed
    this.#dialog.close();
    this.#ended(); // the browser's own event comes later, when the panel may be open again
  }

  #ended() {
    if (!this.#shown) return;
    this.#shown = false;
    this.events.emit("closed");
  }

  /** Show a message at the top of the panel. @param {string} text "" removes it */
  say(text, kind = "error") {
    setText(this.#message, text);
    this.#message.dataset.kind = kind;
    setHidden(this.#message, text === "");
    if (text) this.#message.scrollIntoView({ block: "nearest" });
    if (text && kind === "done") announce(text);
  }

  /** Do something, and show the error if it fails; returns whether it succeeded. */
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

/** Ask before something is lost. @param {() => void} act called if the user agrees */
export async function confirmRemoval(title, text, act) {
  const dialog = byId("confirm");
  setText(byId("confirm-title"), title);
  setText(byId("confirm-text"), text);
  if ((await askDialog(dialog, "keep")) === "remove") act();
}
