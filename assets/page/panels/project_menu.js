/** The project menu: the open project, and actions on a whole project. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { askDialog, byId, disclose, setText } from "../core/dom.js";
import { localStore } from "../core/local_store.js";
import { announce, showDone, showError, showNotice, showProgressNotice } from "../core/notices.js";
import { t } from "../core/texts.js";
import { ProjectList } from "./project_list.js";

/** @import { ProjectBody } from "../core/types" */

const LAST_KEY = "tableread.project";
const LEGACY_TEXT_KEY = "tableread.script";

/** Statuses that mean that there is no such project. */
const ABSENT = new Set([400, 404, 422]);

/**
 * The project in the URL, else the last one, else the newest. It needs nothing of the page, so it is fetched while
 * the page's parts are still being built.
 * @returns {Promise<{body: ProjectBody | null, refusal: Error | null}>} `refusal`: why the one in the URL can't be opened
 */
export async function findOpeningProject() {
  const named = addressed();
  let refusal = null;
  const read = async (id) => {
    try {
      return id ? await api.readProject(id) : null;
    } catch (error) {
      if (id === named) refusal = error;
      if (!ABSENT.has(error.status)) throw error;
      return null;
    }
  };
  const known = (await read(named)) ?? (await read(localStore.get(LAST_KEY)));
  if (known) return { body: known, refusal };
  const [newest] = await api.listProjects();
  return { body: await read(newest?.project_id), refusal };
}

/** @returns {string | null} the project that the address names */
function addressed() {
  return new URLSearchParams(location.search).get("project");
}

/** Emits "project.closing" before another project is shown, and "project.shown" after it. */
export class ProjectMenu {
  #project;
  #name = byId("project-name");
  #close = () => {};
  /** The address of a project that isn't there: what is opened in its place takes its entry in the history. */
  #absent = null;
  // Counts the projects that were asked for: of answers that overtake each other, the last asked for counts.
  #asked = 0;

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    const panel = byId("project-panel");
    disclose(byId("project-open"), panel);
    this.#close = () => !panel.hidden && byId("project-open").click();
    const list = new ProjectList(project, () => this.#close());
    byId("project-open").addEventListener("click", () => panel.hidden || list.show());
    list.events.on("open", (id) => this.#openKnown(id, true));
    list.events.on("restore", (id) => this.#restore(id));
    list.events.on("delete", (about) => this.#ask(about));
    byId("project-new").addEventListener("click", () => this.#begin({ name: t`Untitled`, text: "" }));
    byId("project-copy").addEventListener("click", () => this.#copy());
    for (const button of panel.querySelectorAll("[data-presses]")) {
      button.addEventListener("click", () => byId(button.dataset.presses).click());
    }
    byId("project-delete").addEventListener("click", () =>
      this.#ask({ id: project.id, name: project.view.name }));
    byId("project-renaming").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#name.blur(); // commits the name, and hides a phone's keyboard
      byId("project-open").focus();
    });
    this.#name.addEventListener("change", () => this.#rename());
    // Escape closes the panel and restores the name.
    this.#name.addEventListener("keydown", ({ key }) => key === "Escape" && this.#show({ isForced: true }));
    bus.on("project.meta", () => this.#show());
    bus.on("project.gone", () => this.#gone());
    addEventListener("popstate", () => this.#travel());
  }

  /**
   * Open the project that was found, else create the first one.
   * @param {ReturnType<typeof findOpeningProject>} finding
   */
  async start(finding) {
    const over = showProgressNotice(t`Opening the project…`);
    const { body, refusal } = await finding.finally(over);
    if (refusal) showError(t`Couldn’t open this project`, refusal);
    if (refusal) this.#absent = addressed();
    if (body) return void (await this.adopt(body));
    const legacy = localStore.get(LEGACY_TEXT_KEY);
    const first = legacy ? { name: "My script", text: legacy } : { name: t`Untitled`, text: "" };
    await this.adopt(api.createProject(first));
    return localStore.remove(LEGACY_TEXT_KEY);
  }

  /**
   * Show a project, unless another is asked for before it comes.
   * @param {Promise<ProjectBody> | ProjectBody} coming @returns {Promise<boolean>} whether it is shown
   */
  async adopt(coming) {
    const asked = (this.#asked += 1);
    const body = await coming;
    if (asked !== this.#asked) return false;
    bus.emit("project.closing");
    await this.#project.open(body);
    localStore.set(LAST_KEY, body.project_id);
    this.#enter(body.project_id);
    this.#show();
    bus.emit("project.shown", { place: body.place ?? null });
    return true;
  }

  /** Each project that was open is an entry of the browser's history. */
  #enter(id) {
    const address = new URL(location.href);
    const isPlace = [null, id, this.#absent].includes(addressed());
    address.searchParams.set("project", id);
    history[isPlace ? "replaceState" : "pushState"](history.state, "", address);
  }

  /** Back or forward: open the project that the address names now. */
  async #travel() {
    const id = addressed();
    if (!id || id === this.#project.id) return;
    const isThere = await this.#openKnown(id, true).catch(() => false);
    if (isThere || addressed() !== id) return;
    this.#absent = id;
    this.#enter(this.#project.id);
  }

  /** @returns {Promise<boolean>} whether it is there */
  async #openKnown(id, asked) {
    const over = showProgressNotice(t`Opening the project…`);
    try {
      await this.adopt(api.readProject(id));
      return true;
    } catch (error) {
      if (asked) showError(t`Couldn’t open this project`, error);
      if (!ABSENT.has(error.status)) throw error;
      return false;
    } finally {
      over();
    }
  }

  async #begin(body) {
    this.#close();
    const over = showProgressNotice(t`Creating the project…`);
    try {
      if (await this.adopt(api.createProject(body))) announce(t`New project created.`);
    } catch (error) {
      showError(t`Couldn’t create the project`, error);
    }
    over();
  }

  async #copy() {
    await this.#project.flush();
    await this.#begin({ like: this.#project.id });
  }

  #show({ isForced = false } = {}) {
    const { name } = this.#project.view;
    setText(byId("project-title"), name || t`Untitled`);
    if (isForced || document.activeElement !== this.#name) this.#name.value = name;
    document.title = name ? t`${name} · Tableread` : "Tableread";
  }

  async #rename() {
    const name = this.#name.value.trim();
    if (!name || name === this.#project.view.name) return this.#show();
    try {
      await api.renameProject(this.#project.id, name);
    } catch (error) {
      showError(t`This name can’t be used`, error);
      this.#name.value = this.#project.view.name;
    }
  }

  async #ask({ id, name }) {
    const dialog = byId("project-confirm");
    setText(byId("project-confirm-title"), t`Delete ${name || t`Untitled`}?`);
    this.#close();
    if ((await askDialog(dialog, "keep")) === "delete") await this.#remove(id, name);
  }

  async #remove(id, name) {
    const open = id === this.#project.id;
    try {
      if (open) await this.#project.leave();
      await api.removeProject(id);
      showDone(t`${name || t`Untitled`} deleted.`, { label: t`Undo`, press: () => this.#restore(id) });
    } catch (error) {
      showError(t`Couldn’t delete the project`, error);
    }
    if (open) await this.#another(id);
  }

  async #restore(id) {
    this.#close();
    try {
      if (await this.adopt(api.restoreProject(id))) announce(t`Project restored.`);
    } catch (error) {
      showError(t`Couldn’t restore the project`, error);
    }
  }

  async #gone() {
    const text = t`It was deleted elsewhere. The most recent other project is open now.`;
    showNotice("gone", { kind: "warning", title: t`This project is gone.`, text });
    await this.#another(this.#project.id);
  }

  async #another(id) {
    this.#absent = id;
    const asked = (this.#asked += 1);
    const rest = (await api.listProjects()).filter((one) => one.project_id !== id);
    if (asked !== this.#asked) return;
    if (rest.length) await this.#openKnown(rest[0].project_id, false);
    else await this.#begin({ name: t`Untitled`, text: "" });
  }
}
