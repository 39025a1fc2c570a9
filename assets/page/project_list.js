/** The other projects, and those that were deleted: what can be done without opening them. */
import { byId, fromTemplate, setHidden, setText } from "./dom.js";
import { count, fold, length, moment } from "./format.js";
import { announce, refused } from "./notices.js";
import * as api from "./project_api.js";
import { Space } from "./space.js";

const SEARCHED_FROM = 8;

/** Events: "open" and "restore" with `detail` an id, "delete" with `detail` {id, name}. */
export class ProjectList extends EventTarget {
  #project;
  #space;
  #search = /** @type {HTMLInputElement} */ (byId("projects-search"));

  /** @param {import("./project.js").Project} project @param {() => void} close closes the list */
  constructor(project, close) {
    super();
    this.#project = project;
    this.#space = new Space(project, close);
    this.#search.addEventListener("input", () => this.#filter());
    this.addEventListener("open", close);
  }

  /** Show them as they are now. */
  async show() {
    this.#space.show();
    try {
      const [all, removed] = await Promise.all([api.list(), api.removed()]);
      const others = all.filter((one) => one.project_id !== this.#project.id);
      byId("projects").replaceChildren(...others.map((one) => this.#row(one)));
      setHidden(byId("projects-part"), others.length === 0);
      setHidden(this.#search, others.length < SEARCHED_FROM);
      byId("removed").replaceChildren(...removed.map((one) => this.#removedRow(one)));
      setHidden(byId("removed-part"), removed.length === 0);
      this.#filter();
    } catch (error) {
      refused("The projects can't be listed", error);
    }
  }

  #filter() {
    const wanted = this.#search.hidden ? "" : fold(this.#search.value);
    for (const row of byId("projects").children) setHidden(row, !fold(row.dataset.name).includes(wanted));
  }

  #row({ project_id: id, name, lines, audio_s: seconds, edited_at: editedAt }) {
    const row = fromTemplate("project-template");
    const shown = name || "Untitled";
    row.dataset.name = shown;
    const find = (part) => row.querySelector(`.project-item${part}`);
    setText(find("-name"), shown);
    const sound = seconds ? `, ${length(seconds)}` : "";
    setText(find("-about"), `${count(lines ?? 0, "line")}${sound} · ${moment(editedAt)}`);
    find("").addEventListener("click", () => this.#tell("open", id));
    find("-export").href = api.exportUrl(id, "tableread");
    const labels = { rename: "Rename", export: "Export", delete: "Delete" };
    for (const [part, label] of Object.entries(labels)) find(`-${part}`).ariaLabel = find(`-${part}`).title = `${label} ${shown}`;
    find("-rename").addEventListener("click", () => this.#rename(row, id, shown));
    find("-delete").addEventListener("click", () => this.#tell("delete", { id, name: shown }));
    return row;
  }

  /** The name becomes a field until it is left; Escape leaves it as it was. */
  #rename(row, id, name) {
    const field = document.createElement("input");
    Object.assign(field, { type: "text", value: name, maxLength: 120, dir: "auto", ariaLabel: `Name of ${name}` });
    const item = row.querySelector(".project-item");
    let kept = false;
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation(); // Escape would close the panel
      kept = event.key === "Escape";
      field.blur();
    });
    field.addEventListener("blur", async () => {
      field.replaceWith(item);
      if (!kept) await this.#keepName(id, name, field.value.trim());
    });
    item.replaceWith(field);
    field.focus();
    field.select();
  }

  async #keepName(id, before, name) {
    if (!name || name === before) return;
    try {
      await api.rename(id, name);
      announce(`It is called ${name} now.`);
    } catch (error) {
      refused("This name can't be used", error);
    }
    await this.show();
  }

  #removedRow({ project_id: id, name, edited_at: removedAt }) {
    const row = fromTemplate("removed-template");
    setText(row.querySelector(".project-item-name"), name || "Untitled");
    setText(row.querySelector(".project-item-about"), `deleted ${moment(removedAt)}`);
    const restore = row.querySelector("button");
    restore.ariaLabel = `Restore ${name || "Untitled"}`;
    restore.addEventListener("click", () => this.#tell("restore", id));
    return row;
  }

  #tell(name, detail) {
    this.dispatchEvent(new CustomEvent(name, { detail }));
  }
}
