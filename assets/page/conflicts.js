/** Two people changed the same thing: both versions side by side, and a choice. */
import { announce } from "./notices.js";
import { byId, fromTemplate, setText } from "./dom.js";

const WORDS = { text: "Text", speaker: "Speaker", language: "Language", seed: "Seed", params: "Voice settings", duration_s: "Length of the pause" };

export class Conflicts {
  #dialog = /** @type {HTMLDialogElement} */ (byId("conflicts"));
  #project;
  #open = [];

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    this.#project = project;
    project.addEventListener("conflict", ({ detail }) => this.#take(detail));
  }

  #take(conflicts) {
    this.#open.push(...conflicts);
    if (!this.#open.length) return announce("The dialog was changed elsewhere meanwhile; your last step was left out.");
    byId("conflict-list").replaceChildren(...this.#open.map((one) => this.#row(one)));
    if (!this.#dialog.open) this.#dialog.showModal();
    return undefined;
  }

  #row(conflict) {
    const { line_id: lineId, field, mine, theirs } = conflict;
    const row = fromTemplate("conflict-template");
    setText(row.querySelector(".conflict-field"), WORDS[field] ?? "Line");
    setText(row.querySelector(".conflict-mine"), shown(mine));
    setText(row.querySelector(".conflict-theirs"), shown(theirs));
    const keep = row.querySelector(".keep-mine");
    keep.hidden = !(field in WORDS) || !this.#project.line(lineId);
    keep.addEventListener("click", () => {
      this.#project.edit([{ op: "set", line_ids: [lineId], fields: { [field]: mine } }]);
      this.#settle(conflict, row);
    });
    row.querySelector(".keep-theirs").addEventListener("click", () => this.#settle(conflict, row));
    return row;
  }

  #settle(conflict, row) {
    this.#open = this.#open.filter((one) => one !== conflict);
    row.remove();
    if (!this.#open.length) this.#dialog.close();
  }
}

function shown(value) {
  if (value === null || value === undefined) return "—";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}
