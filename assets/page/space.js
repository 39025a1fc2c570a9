/** What deleted takes and projects still hold on the disk, and giving it back. */
import { answerTo } from "./asking.js";
import { byId, setHidden, setText } from "./dom.js";
import { count, memory } from "./format.js";
import { done, notice, refused } from "./notices.js";
import * as api from "./project_api.js";

export class Space {
  #project;
  #button = byId("space-free");
  #held = null;

  /** @param {import("./project.js").Project} project @param {() => void} close closes the list it stands in */
  constructor(project, close) {
    this.#project = project;
    this.#button.addEventListener("click", () => {
      close();
      this.#ask();
    });
  }

  /** Say how much there is, when there is any. */
  async show() {
    try {
      this.#held = await api.space();
      setHidden(this.#button, this.#held.bytes === 0);
      const own = this.#held.projects.some(({ project_id: id }) => id === this.#project.id);
      setHidden(byId("project-slim"), !own);
      setText(this.#button, `Free space… ${memory(this.#held.bytes)} of what was deleted`);
    } catch (error) {
      refused("The space can't be told", error);
    }
  }

  async #ask() {
    const { bytes, takes, recordings, trash } = this.#held;
    const dialog = /** @type {HTMLDialogElement} */ (byId("space-confirm"));
    setText(byId("space-confirm-title"), `Free ${memory(bytes)}?`);
    setHidden(byId("space-takes"), takes.files === 0);
    setText(byId("space-takes-size"), `${count(takes.files, "deleted take")}, ${memory(takes.bytes)}.`);
    setHidden(byId("space-recordings"), recordings.files === 0);
    setText(byId("space-recordings-size"), `${count(recordings.files, "unused recording")}, ${memory(recordings.bytes)}.`);
    setHidden(byId("space-trash"), trash.projects === 0);
    setText(byId("space-trash-size"), `${count(trash.projects, "deleted project")}, ${memory(trash.bytes)}.`);
    if ((await answerTo(dialog, "keep")) === "free") await this.#free();
  }

  async #free() {
    try {
      const { bytes, left } = await api.freeSpace();
      done(`${memory(bytes)} are free again.`);
      const text = left.map(({ message }) => message).join(" ") || null;
      notice("space", { kind: "warning", title: "Some of it is still there.", text });
      await this.#project.look();
    } catch (error) {
      refused("The space can't be freed", error);
    }
  }
}
