/** The other projects, and those that were deleted: what can be done without opening them. */
import { byId, fromTemplate, setHidden, setText } from "./dom.js";
import { ago, count, date, fold, length, moment } from "./format.js";
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
      const names = others.map(({ name }) => shown(name));
      const isOnly = (name) => names.indexOf(name) === names.lastIndexOf(name);
      byId("projects").replaceChildren(...others.map((one) => this.#row(one, isOnly(shown(one.name)))));
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

  /** Several of one name are told apart by the time of day, too. */
  #row({ project_id: id, name: own, lines, audio_s: seconds, edited_at: editedAt }, isOnly) {
    const row = fromTemplate("project-template");
    const name = shown(own);
    row.dataset.name = name;
    const find = (part) => row.querySelector(`.project-item${part}`);
    setText(find("-name"), name);
    const sound = seconds ? `, ${length(seconds)}` : "";
    const edited = isOnly ? ago(editedAt) : [...new Set([ago(editedAt), moment(editedAt)])].join(", ");
    setText(find("-about"), `${count(lines ?? 0, "line")}${sound} · ${edited}`);
    find("-about").title = `Edited ${date(editedAt)}`;
    find("").addEventListener("click", () => this.#tell("open", id));
    find("-export").href = api.exportUrl(id, "tableread");
    const labels = { rename: "Rename", export: "Export", delete: "Delete" };
    for (const [part, label] of Object.entries(labels)) find(`-${part}`).ariaLabel = find(`-${part}`).title = `${label} ${name}`;
    find("-rename").addEventListener("click", () => this.#rename(row, id, name));
    find("-delete").addEventListener("click", () => this.#tell("delete", { id, name }));
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

function shown(name) {
  return name || "Untitled";
}
