/** Which engine and which seed a project is read with, and a question before another one reads all. */
import { answerTo } from "./asking.js";
import { byId, setHidden, setText } from "./dom.js";
import { count } from "./format.js";

const ASKED_FROM = 3;

const engine = () => /** @type {HTMLSelectElement} */ (byId("project-engine"));
const seed = () => /** @type {HTMLInputElement} */ (byId("project-seed"));

export class ProjectEngine {
  #project;
  #backends = [];
  #own = null;
  #shown = "";

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    this.#project = project;
    project.agree = () => this.#agree();
    project.addEventListener("change", ({ detail }) => detail.meta && this.#show());
    engine().addEventListener("change", () => this.#set({ backend: engine().value || null }));
    seed().addEventListener("change", () => {
      if (seed().validity.valid) this.#set({ seed: seed().value === "" ? null : Number(seed().value) });
      else this.#show();
    });
  }

  /** @param {{backend: {name: string}, backends: Array<{name: string, title: string, reason: string | null}>}} state */
  offer({ backend, backends }) {
    const shown = JSON.stringify([backend.name, backends]);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#own = backend.name;
    this.#backends = backends;
    this.#show();
  }

  #set(fields) {
    this.#project.edit([{ op: "settings", fields }]);
  }

  #title(name) {
    return this.#backends.find((one) => one.name === name)?.title ?? name;
  }

  #show() {
    const { settings } = this.#project.view;
    if (document.activeElement !== engine()) {
      const able = this.#backends.filter(({ name, reason }) => !reason || name === settings.backend);
      const options = able.map(({ name, title }) => new Option(title, name));
      engine().replaceChildren(new Option(`The studio’s: ${this.#title(this.#own)}`, ""), ...options);
      engine().value = settings.backend ?? "";
    }
    if (document.activeElement !== seed()) seed().value = settings.seed ?? "";
  }

  /** Lines whose take another engine made than the one that would speak now. */
  #foreign() {
    const now = this.#project.view.settings.backend ?? this.#own;
    const made = new Map();
    for (const { kind, take, locked } of this.#project.lines) {
      if (kind !== "speech" || !take || locked) continue;
      made.set(take.backend, (made.get(take.backend) ?? 0) + 1);
    }
    const [most] = [...made].toSorted((one, other) => other[1] - one[1]);
    if (!most || most[0] === now || most[1] < ASKED_FROM) return null;
    return { now, former: most[0], lines: most[1] };
  }

  /** @returns {Promise<boolean>} whether what is missing or outdated may be read now */
  async #agree() {
    const found = this.#foreign();
    if (!found) return true;
    const choice = await this.#ask(found);
    if (choice === "keep") this.#set({ backend: found.former });
    await this.#project.flush();
    return choice === "keep" || choice === "anew";
  }

  #ask({ now, former, lines }) {
    const dialog = /** @type {HTMLDialogElement} */ (byId("engine-confirm"));
    const able = this.#backends.some(({ name, reason }) => name === former && !reason);
    const anew = `Read ${count(lines, "line")} anew with ${this.#title(now)}`;
    setText(byId("engine-confirm-title"), `These takes were made with ${this.#title(former)}.`);
    setText(byId("engine-confirm-text"), `${anew}? The present takes are kept: each line can go back to its own.`);
    setText(byId("engine-keep"), `Keep ${this.#title(former)} for this project`);
    setHidden(byId("engine-keep"), !able);
    setText(byId("engine-anew"), "Read anew");
    return answerTo(dialog, "cancel");
  }
}
