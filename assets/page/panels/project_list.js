/** The list of projects, the trash, and the disk space of deleted takes and projects. */
import * as api from "../core/api.js";
import { Bus } from "../core/bus.js";
import { askDialog, byId, focusedElement, fromTemplate, setHidden, setText } from "../core/dom.js";
import { fold, formatAgo, formatBytes, formatCount, formatDate, formatDay, formatLength } from "../core/format.js";
import { announce, showDone, showError, showNotice } from "../core/notices.js";
import { RowFocus } from "../core/row_focus.js";
import { t, translateServer } from "../core/texts.js";

/** The disk space of deleted takes and projects, and freeing it. */
export class DiskUsage {
  #project;
  #button = byId("space-free");
  #held = null;

  /** @param {import("../document/project.js").Project} project @param {() => void} close closes the list it stands in */
  constructor(project, close) {
    this.#project = project;
    this.#button.addEventListener("click", () => {
      close();
      this.#ask();
    });
  }

  /** Show how much there is, if there is any. */
  async show() {
    try {
      this.#held = await api.readDiskUsage();
      setHidden(this.#button, this.#held.bytes === 0);
      const own = this.#held.projects.some(({ project_id: id }) => id === this.#project.id);
      setHidden(byId("project-slim"), !own);
      setText(this.#button, t`Clean up… ${formatBytes(this.#held.bytes)} deleted`);
    } catch (error) {
      showError(t`Couldn’t measure the space`, error);
    }
  }

  async #ask() {
    const { bytes, takes, recordings, trash } = this.#held;
    const dialog = byId("space-confirm");
    setText(byId("space-confirm-title"), t`Free ${formatBytes(bytes)}?`);
    setHidden(byId("space-takes"), takes.files === 0);
    setText(byId("space-takes-size"), `${formatCount(takes.files, "deleted take")}, ${formatBytes(takes.bytes)}.`);
    setHidden(byId("space-recordings"), recordings.files === 0);
    setText(byId("space-recordings-size"), `${formatCount(recordings.files, "unused recording")}, ${formatBytes(recordings.bytes)}.`);
    setHidden(byId("space-trash"), trash.projects === 0);
    setText(byId("space-trash-size"), `${formatCount(trash.projects, "deleted project")}, ${formatBytes(trash.bytes)}.`);
    if ((await askDialog(dialog, "keep")) === "free") await this.#free();
  }

  async #free() {
    try {
      const { bytes, left } = await api.freeSpace();
      showDone(t`${formatBytes(bytes)} freed.`);
      const text = left.map(({ message }) => translateServer(message)).join(" ") || null;
      showNotice("space", { kind: "warning", title: t`Some of it couldn’t be removed.`, text });
      await this.#project.look();
    } catch (error) {
      showError(t`Couldn’t free the space`, error);
    }
  }
}

const SEARCHED_FROM = 8;

/** The list itself, with actions on projects that aren't open. */
export class ProjectList {
  /** @type {Bus<import("../core/types").ProjectListEvents>} */
  events = new Bus();
  #project;
  #space;
  #search = byId("projects-search");
  #focus = new RowFocus(byId("projects"), ".project-item");

  /** @param {import("../document/project.js").Project} project @param {() => void} close closes the list */
  constructor(project, close) {
    this.#project = project;
    this.#space = new DiskUsage(project, close);
    this.#search.addEventListener("input", () => this.#filter());
    this.events.on("open", close);
  }

  /** Update the list. */
  async show() {
    this.#space.show();
    try {
      const [all, removed] = await Promise.all([api.listProjects(), api.listRemovedProjects()]);
      const others = all.filter((one) => one.project_id !== this.#project.id);
      const names = others.map(({ name }) => shown(name));
      const isOnly = (name) => names.indexOf(name) === names.lastIndexOf(name);
      const held = this.#held();
      byId("projects").replaceChildren(...others.map((one) => this.#row(one, isOnly(shown(one.name)))));
      setHidden(byId("projects-part"), others.length === 0);
      setHidden(this.#search, others.length < SEARCHED_FROM);
      byId("removed").replaceChildren(...removed.map((one) => this.#removedRow(one)));
      setHidden(byId("removed-part"), removed.length === 0);
      this.#filter();
      if (held) this.#hold(held);
    } catch (error) {
      showError(t`Couldn’t list the projects`, error);
    }
  }

  /** The focused control in the list. @returns {{id: string, at: number, control: string} | null} */
  #held() {
    const row = focusedElement()?.closest("#projects .project-row");
    if (!row) return null;
    const control = [...focusedElement().classList].find((name) => name.startsWith("project-item"));
    return { id: row.dataset.project, at: [...byId("projects").children].indexOf(row), control };
  }

  /** The focus stays at its project, or at the one that is now in its place. */
  #hold({ id, at, control }) {
    const rows = [...byId("projects").children];
    const row = rows.find(({ dataset }) => dataset.project === id) ?? rows[Math.min(at, rows.length - 1)];
    row?.querySelector(`.${control ?? "project-item"}`).focus();
  }

  #filter() {
    const wanted = this.#search.hidden ? "" : fold(this.#search.value);
    for (const row of byId("projects").children) setHidden(row, !fold(row.dataset.name).includes(wanted));
    this.#focus.mark();
  }

  /** Projects of the same name are shown with the time of day, too. */
  #row({ project_id: id, name: own, numbered, audio_s: seconds, edited_at: editedAt, problem }, isOnly) {
    const row = fromTemplate("project-template");
    const name = shown(own);
    row.dataset.name = name;
    row.dataset.project = id;
    const find = (part) => row.querySelector(`.project-item${part}`);
    setText(find("-name"), name);
    const sound = seconds ? `, ${formatLength(seconds)}` : "";
    const edited = isOnly ? formatAgo(editedAt) : [...new Set([formatAgo(editedAt), formatDay(editedAt)])].join(", ");
    setText(find("-about"), translateServer(problem) ?? `${formatCount(numbered ?? 0, "line")}${sound} · ${edited}`);
    find("-about").title = `${problem ? `${problem} ` : ""}${t`Edited ${formatDate(editedAt)}`}`;
    find("").addEventListener("click", () => this.events.emit("open", id));
    find("-export").href = api.exportUrl(id, "tableread");
    const labels = { rename: t`Rename`, export: t`Export`, delete: t`Delete` };
    for (const [part, label] of Object.entries(labels)) find(`-${part}`).ariaLabel = find(`-${part}`).title = t`${label} ${name}`;
    find("-rename").addEventListener("click", () => this.#rename(row, id, name));
    find("-delete").addEventListener("click", () => this.events.emit("delete", { id, name }));
    return row;
  }

  /** Turn the name into a field until it loses the focus; Escape restores it. */
  #rename(row, id, name) {
    const field = document.createElement("input");
    Object.assign(field, { type: "text", value: name, maxLength: 120, dir: "auto", ariaLabel: t`Name of ${name}` });
    const item = row.querySelector(".project-item");
    let kept = false;
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== "Escape") return;
      event.preventDefault();
      event.stopPropagation(); // Escape would close the panel
      kept = event.key === "Escape";
      field.blur();
      item.focus();
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
      await api.renameProject(id, name);
      announce(t`Renamed to ${name}.`);
    } catch (error) {
      showError(t`This name can’t be used`, error);
    }
    await this.show();
  }

  #removedRow({ project_id: id, name, edited_at: removedAt, problem }) {
    const row = fromTemplate("removed-template");
    setText(row.querySelector(".project-item-name"), name || t`Untitled`);
    setText(row.querySelector(".project-item-about"), [t`deleted ${formatDay(removedAt)}`, problem].filter(Boolean).join(" · "));
    const restore = row.querySelector("button");
    restore.ariaLabel = t`Restore ${name || t`Untitled`}`;
    restore.addEventListener("click", () => this.events.emit("restore", id));
    return row;
  }
}

function shown(name) {
  return name || t`Untitled`;
}
