/** What an empty project offers: paste a script, open a file, or try an example. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { askDialog, byId, setHidden } from "../core/dom.js";
import { showError } from "../core/notices.js";
import { t } from "../core/texts.js";

/** @import { Parts } from "../core/types" */

export class StartScreen {
  #lineImport;
  #dialog = byId("paste-dialog");
  #text = byId("paste-text");

  /** @param {Pick<Parts, "lineImport" | "project">} parts */
  constructor({ lineImport, project }) {
    this.#lineImport = lineImport;
    // A first project that is empty is no change of the lines, which the list shows and hides it by.
    bus.on("project.shown", () => setHidden(byId("lines-empty"), project.view.order.length > 0));
    byId("start-paste").addEventListener("click", () => this.#paste());
    byId("start-example").addEventListener("click", () => this.#offerExamples(byId("start-examples").hidden));
    for (const button of byId("start-examples").querySelectorAll("[data-example]")) {
      button.addEventListener("click", () => this.#bringExample(button.dataset.example));
    }
    // What is pasted is what was wanted: no further press.
    this.#text.addEventListener("paste", () => setTimeout(() => this.#text.value.trim() && this.#dialog.close("add")));
  }

  async #paste() {
    this.#text.value = "";
    const asked = askDialog(this.#dialog, "cancel");
    this.#text.focus();
    if ((await asked) === "add" && this.#text.value.trim()) await this.#bring(this.#text.value);
  }

  #offerExamples(open) {
    setHidden(byId("start-examples"), !open);
    byId("start-example").setAttribute("aria-expanded", String(open));
    if (open) byId("start-examples").querySelector("button").focus();
  }

  async #bringExample(name) {
    try {
      await this.#bring(await (await api.readExample(name)).text());
      this.#offerExamples(false);
    } catch (error) {
      showError(t`Couldn’t open the example`, error);
    }
  }

  async #bring(text) {
    if (await this.#lineImport.text(text, null)) bus.emit("start.used");
  }
}
