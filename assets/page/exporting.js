/** Files out: what a format can't hold, or what has no sound yet, is said with the file. */
import * as api from "./project_api.js";
import { count } from "./format.js";
import { announce, done, notice, refused } from "./notices.js";
import { SoundExport } from "./sound_export.js";

export class Exporting {
  #project;

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    this.#project = project;
    new SoundExport(project, () => this.#checkSound());
    for (const link of document.querySelectorAll("a[data-format]")) {
      link.addEventListener("click", (event) => this.#press(event, link));
    }
  }

  /** Point the links at the open project. */
  link() {
    for (const link of document.querySelectorAll("a[data-format]")) {
      const slim = "slim" in link.dataset ? "&deleted=false" : "";
      link.href = api.exportUrl(this.#project.id, link.dataset.format) + slim;
    }
    notice("export", {});
  }

  #press(event, link) {
    const { format } = link.dataset;
    link.closest(".menu")?.querySelector("[aria-expanded=true]")?.click();
    event.preventDefault();
    if (format === "tableread") return this.#hand(link, "The project’s file");
    return this.#save(format, link.textContent.split(",")[0].trim());
  }

  /** What may be large the browser fetches itself, once the studio has every edit. */
  async #hand({ href }, what) {
    await this.#project.flush();
    done(`${what} is being made; the download begins when it is ready.`);
    download(href, "");
  }

  /** A script is small: it is fetched first, so that a refusal is read instead of a failed file. */
  async #save(format, label) {
    try {
      await this.#project.flush();
      const { blob, leftOut } = await api.exported(this.#project.id, format);
      const address = URL.createObjectURL(blob);
      download(address, `${this.#project.view.name || "Untitled"}.${format}`);
      // The browser has taken it over by the time the page is idle again.
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
      const title = `Saved as ${label}, without some things.`;
      notice("export", { kind: "warning", title, text: leftOut || null });
      if (leftOut) announce(`${title} ${leftOut}`);
      else done(`Saved as ${label}.`);
    } catch (error) {
      refused(`${label} can't be saved`, error);
    }
  }

  /** What will be missing in the sound is known here. @returns {boolean} whether there is any */
  #checkSound() {
    const heard = this.#project.lines.filter(({ kind }) => kind !== "silence");
    const silent = heard.filter(({ take }) => !take);
    const old = heard.filter(({ take, state }) => take && state !== "ready");
    const locked = old.filter((line) => line.locked);
    const missing = [said(silent, "has no sound and is left out", "have no sound and are left out"),
      said(old.filter((line) => !line.locked), "is heard as before the last change", "are heard as before the last change")];
    if (silent.length === heard.length) {
      const why = "Nothing has been read yet. Press Read the scene first.";
      refused("There is no sound to save", new Error(why));
      return false;
    }
    const parts = missing.filter(Boolean);
    if (parts.length) parts.push("Press Read the scene, then save again.");
    if (locked.length) parts.push(said(locked, "is locked and heard as before its last change: unlock it first", "are locked and heard as before their last change: unlock them first"));
    notice("export", { kind: "warning", title: "The file isn’t the whole scene.", text: parts.join(" ") || null });
    if (parts.length) announce(parts.join(" "));
    return true;
  }
}

/** @returns {string} nothing of no lines */
function said(lines, one, many) {
  return lines.length ? `${count(lines.length, `line ${one}`, `lines ${many}`)}.` : "";
}

function download(href, name) {
  const link = document.createElement("a");
  link.href = href;
  link.download = name;
  link.click();
}
