/** The menu of a row's speaker chip, with the other speakers. */
import { byId, focusedElement, fromTemplate, safeColour, setText } from "../core/dom.js";
import { t } from "../core/texts.js";

/** @import { Parts } from "../core/types" */

export class SpeakerMenu {
  #menu = byId("speaker-menu");
  #button = null;
  #parts;

  /** @param {Pick<Parts, "project" | "selection" | "commands" | "linePanel">} parts */
  constructor(parts) {
    this.#parts = parts;
    this.#menu.addEventListener("click", (event) => this.#press(event));
    this.#menu.addEventListener("keydown", (event) => this.#key(event));
    this.#menu.addEventListener("focusout", ({ relatedTarget }) => {
      if (!this.#menu.contains(relatedTarget)) this.#close();
    });
  }

  /** @param {HTMLElement} button the chip @param {string} lineId */
  open(button, lineId) {
    const { project, linePanel } = this.#parts;
    const line = project.line(lineId);
    if (line.kind !== "speech") return;
    this.#button = button;
    this.#menu.replaceChildren(...project.view.speakers.map((speaker) => this.#item(speaker, line)));
    const other = fromTemplate("speaker-item-template");
    setText(other.querySelector(".item-name"), t`Someone else…`);
    other.addEventListener("click", () => linePanel.askSpeaker());
    this.#menu.append(other);
    this.#place(button.getBoundingClientRect());
    (this.#menu.querySelector("[aria-checked=true]") ?? this.#menu.firstElementChild).focus();
  }

  #item({ name, colour }, line) {
    const item = fromTemplate("speaker-item-template");
    item.dataset.speaker = name;
    item.setAttribute("role", "menuitemradio");
    item.setAttribute("aria-checked", String(name === line.speaker));
    item.querySelector(".swatch").style.background = safeColour(colour);
    setText(item.querySelector(".item-name"), name);
    return item;
  }

  #place(box) {
    this.#menu.hidden = false;
    this.#button.setAttribute("aria-expanded", "true");
    const below = innerHeight - box.bottom - 12;
    this.#menu.style.left = `${Math.min(box.left, innerWidth - this.#menu.offsetWidth - 12)}px`;
    this.#menu.style.top = `${this.#menu.offsetHeight > below ? Math.max(8, box.top - this.#menu.offsetHeight) : box.bottom + 4}px`;
  }

  #press({ target }) {
    const item = target.closest("[data-speaker]");
    if (item) this.#parts.commands.set({ speaker: item.dataset.speaker });
    this.#close();
    if (item) this.#parts.selection.focus();
  }

  #key(event) {
    const items = [...this.#menu.children];
    const at = items.indexOf(focusedElement());
    const to = { ArrowDown: at + 1, ArrowUp: at - 1 + items.length, Home: 0, End: items.length - 1 };
    if (event.key in to) items[to[event.key] % items.length].focus();
    else if (event.key === "Escape") this.#parts.selection.focus();
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  #close() {
    this.#menu.hidden = true;
    this.#button?.setAttribute("aria-expanded", "false");
  }
}
