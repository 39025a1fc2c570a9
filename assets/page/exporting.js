/** Files out: what a format can't hold, or what has no sound yet, is said with the file. */
import * as api from "./project_api.js";
import { count } from "./format.js";
import { announce, done, notice, refused } from "./notices.js";

const SOUNDS = new Set(["wav", "flac", "mp3", "zip"]);

export class Exporting {
  #project;

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    this.#project = project;
    for (const link of document.querySelectorAll("a[data-format]")) {
      link.addEventListener("click", (event) => this.#press(event, link));
    }
  }

  /** Point the links at the open project. */
  link() {
    for (const link of document.querySelectorAll("a[data-format]")) {
      link.href = api.exportUrl(this.#project.id, link.dataset.format);
    }
    notice("export", {});
  }

  #press(event, link) {
    const { format } = link.dataset;
    link.closest(".menu")?.querySelector("[aria-expanded=true]")?.click();
    if (format === "tableread") return;
    if (SOUNDS.has(format)) return this.#checkSound(event);
    event.preventDefault();
    this.#save(format, link.textContent.split(",")[0].trim());
  }

  /** A script is small: it is fetched first, so that a refusal is read instead of a failed file. */
  async #save(format, label) {
    try {
      await this.#project.flush();
      const { blob, leftOut } = await api.exported(this.#project.id, format);
      download(blob, `${this.#project.view.name || "Untitled"}.${format}`);
      const title = `Saved as ${label}, without some things.`;
      notice("export", { kind: "warning", title, text: leftOut || null });
      if (leftOut) announce(`${title} ${leftOut}`);
      else done(`Saved as ${label}.`);
    } catch (error) {
      refused(`${label} can't be saved`, error);
    }
  }

  /** Sound may be long, so the browser fetches it itself; what will be missing in it is known here. */
  #checkSound(event) {
    const heard = this.#project.lines.filter(({ kind }) => kind !== "silence");
    const silent = heard.filter(({ take }) => !take);
    const old = heard.filter(({ take, state }) => take && state !== "ready");
    if (silent.length === heard.length) {
      event.preventDefault();
      const why = "Nothing has been read yet. Press Read the scene first.";
      return refused("There is no sound to save", new Error(why));
    }
    const parts = [
      silent.length && `${count(silent.length, "line has", "lines have")} no sound and ${silent.length === 1 ? "is" : "are"} left out.`,
      old.length && `${count(old.length, "line is", "lines are")} heard as before the last change.`,
    ].filter(Boolean);
    const text = parts.length ? `${parts.join(" ")} Press Read the scene, then save again.` : null;
    notice("export", { kind: "warning", title: "The file isn’t the whole scene.", text });
    announce(text ?? "The file is being made.");
  }
}

function download(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has taken it over by the time the page is idle again.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
