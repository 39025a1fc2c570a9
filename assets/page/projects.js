/** Projects: the one that is open, the recent ones, and what can be done with a whole one. */
import { announce, notice, refused } from "./notices.js";
import { byId, disclose, fromTemplate, setHidden, setText } from "./dom.js";
import { count, length } from "./format.js";
import * as api from "./project_api.js";
import { Space } from "./space.js";
import { stored } from "./stored.js";

const LAST_KEY = "tableread.project";
const FORMER_TEXT_KEY = "tableread.script";

/** Events: "closing" before and "opened" after another project takes the place of the former. */
export class Projects extends EventTarget {
  #project;
  #name = /** @type {HTMLInputElement} */ (byId("project-name"));
  #close = () => {};
  #space;

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    super();
    this.#project = project;
    const panel = byId("project-panel");
    disclose(byId("project-open"), panel);
    this.#close = () => !panel.hidden && byId("project-open").click();
    this.#space = new Space(project, () => this.#close());
    byId("project-open").addEventListener("click", () => this.#list());
    byId("project-new").addEventListener("click", () => this.#begin({ name: "Untitled", text: "" }));
    byId("project-copy").addEventListener("click", () => this.#copy());
    byId("project-delete").addEventListener("click", () => this.#delete());
    byId("project-renaming").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#name.blur();
    });
    this.#name.addEventListener("change", () => this.#rename());
    project.addEventListener("change", ({ detail }) => detail.meta && this.#show());
    project.addEventListener("gone", () => this.#gone());
  }

  /** Open the project of the address, else the last one, else the newest, else make the first. */
  async start(openingText) {
    const asked = new URLSearchParams(location.search).get("project");
    for (const id of [asked, stored.get(LAST_KEY)]) {
      if (id && (await this.#openKnown(id, id === asked))) return;
    }
    const [newest] = await api.list();
    if (newest && (await this.#openKnown(newest.project_id, false))) return;
    const former = stored.get(FORMER_TEXT_KEY);
    const first = former ? { name: "My script", text: former } : { name: "The lighthouse", text: openingText };
    await this.adopt(await api.create(first));
    stored.remove(FORMER_TEXT_KEY);
  }

  /** Show a project. @param {object} body */
  async adopt(body) {
    this.dispatchEvent(new Event("closing"));
    await this.#project.open(body);
    stored.set(LAST_KEY, body.project_id);
    const address = new URL(location.href);
    address.searchParams.set("project", body.project_id);
    history.replaceState(history.state, "", address);
    this.#show();
    this.dispatchEvent(new Event("opened"));
  }

  /** @returns {Promise<boolean>} whether it is there */
  async #openKnown(id, asked) {
    try {
      await this.adopt(await api.read(id));
      return true;
    } catch (error) {
      if (asked) refused("This project can't be opened", error);
      if (![404, 400, 422].includes(error.status)) throw error;
      return false;
    }
  }

  async #begin(body) {
    this.#close();
    try {
      await this.adopt(await api.create(body));
      announce("A new project is open.");
    } catch (error) {
      refused("The project can't be made", error);
    }
  }

  async #copy() {
    await this.#project.flush();
    await this.#begin({ like: this.#project.id });
  }

  #show() {
    const { name } = this.#project.view;
    setText(byId("project-title"), name || "Untitled");
    if (document.activeElement !== this.#name) this.#name.value = name;
    document.title = name ? `${name} · Tableread` : "Tableread";
  }

  async #rename() {
    const name = this.#name.value.trim();
    if (!name || name === this.#project.view.name) return this.#show();
    try {
      await api.rename(this.#project.id, name);
    } catch (error) {
      refused("This name can't be used", error);
      this.#name.value = this.#project.view.name;
    }
  }

  #delete() {
    const dialog = /** @type {HTMLDialogElement} */ (byId("project-confirm"));
    setText(byId("project-confirm-title"), `Delete ${this.#project.view.name}?`);
    dialog.returnValue = "keep";
    dialog.onclose = () => dialog.returnValue === "delete" && this.#remove();
    this.#close();
    dialog.showModal();
  }

  async #remove() {
    const { id } = this.#project;
    try {
      await this.#project.leave();
      await api.remove(id);
    } catch (error) {
      refused("The project can't be deleted", error);
    }
    await this.#another(id);
  }

  async #gone() {
    const text = "It was deleted elsewhere; the newest of the others is open.";
    notice("gone", { kind: "warning", title: "This project is gone.", text });
    await this.#another(this.#project.id);
  }

  async #another(id) {
    const rest = (await api.list()).filter((one) => one.project_id !== id);
    if (rest.length) await this.#openKnown(rest[0].project_id, false);
    else await this.#begin({ name: "Untitled", text: "" });
  }

  async #list() {
    if (byId("project-panel").hidden) return;
    this.#space.show();
    try {
      const all = await api.list();
      const others = all.filter((one) => one.project_id !== this.#project.id);
      byId("projects").replaceChildren(...others.map((one) => this.#row(one)));
      setHidden(byId("projects-part"), others.length === 0);
    } catch (error) {
      refused("The projects can't be listed", error);
    }
  }

  #row({ project_id: id, name, lines, audio_s: seconds }) {
    const row = fromTemplate("project-template");
    setText(row.querySelector(".project-item-name"), name || "Untitled");
    const sound = seconds ? `, ${length(seconds)}` : "";
    setText(row.querySelector(".project-item-about"), `${count(lines ?? 0, "line")}${sound}`);
    row.querySelector("button").addEventListener("click", () => {
      this.#close();
      this.#openKnown(id, true);
    });
    return row;
  }
}
