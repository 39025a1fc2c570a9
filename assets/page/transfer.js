/** Files in: by the button, or by letting them fall on the page; each goes where it is of use. */
import { Exporting } from "./exporting.js";
import * as api from "./project_api.js";
import { announce, notice, refused } from "./notices.js";
import { byId, disclose, setHidden, setText } from "./dom.js";
import { isSound } from "./recordings.js";

const WORDS = {
  project: "Let go to import it as a new project",
  line: "Let go to add it as a recording",
  file: "Let go to play it in this line",
  voice: "Let go to make a voice of it",
};

export class Transfer {
  #parts;

  /** @param {object} parts projects, project, lines, recordings, speakers */
  constructor(parts) {
    this.#parts = parts;
    const { projects, project } = parts;
    disclose(byId("download"), byId("download-menu"));
    disclose(byId("export"), byId("export-menu"));
    byId("import").addEventListener("click", () => byId("import-file").click());
    byId("project-import").addEventListener("click", () => byId("import-file").click());
    byId("import-file").addEventListener("change", ({ target }) => this.#bring([...target.files], target));
    this.#listenForDrops();
    const exporting = new Exporting(project);
    projects.addEventListener("opened", () => exporting.link());
  }

  #listenForDrops() {
    const veil = byId("drop-veil");
    addEventListener("dragover", (event) => {
      if (!carriesFiles(event)) return;
      event.preventDefault(); // or the browser would leave the page for the file
      const place = this.#place(event, [...event.dataTransfer.items].some(({ type }) => isSound({ name: "", type })));
      setText(veil.firstElementChild, WORDS[place] ?? "");
      setHidden(veil, place === null);
    });
    addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? setHidden(veil, true));
    addEventListener("drop", (event) => {
      setHidden(veil, true);
      if (!carriesFiles(event)) return;
      event.preventDefault();
      this.#drop(event, [...event.dataTransfer.files]);
    });
  }

  /** What a file would become where it is. @returns {"project" | "line" | "file" | "voice" | null} */
  #place({ target }, sound) {
    const on = (selector) => target instanceof Element && target.closest(selector);
    if (on("dialog")) return null;
    if (!sound) return "project";
    if (on("#cast-column")) return "voice";
    return on('.line[data-kind="audio"]') ? "file" : "line";
  }

  #drop(event, files) {
    const { lines, recordings, speakers } = this.#parts;
    const sounds = files.filter(isSound);
    const place = this.#place(event, sounds.length > 0);
    if (place === null) return undefined;
    if (place === "voice") return speakers.begin(sounds[0]);
    const lineId = lines.lineOf(event.target);
    if (place === "file") return recordings.bring(sounds[0], lineId);
    if (place === "line") return recordings.bring(sounds[0], null, lineId ?? undefined);
    return this.#bring(files);
  }

  /** @param {File[]} files each becomes a project; the last one is opened */
  async #bring(files, input = null) {
    for (const file of files) {
      try {
        const body = await api.importFile(file);
        await this.#parts.projects.adopt(body);
        announce(`${file.name} is imported.`);
        notice("import", {});
      } catch (error) {
        refused(`${file.name} can't be imported`, error);
      }
    }
    if (input) input.value = "";
  }
}

function carriesFiles(event) {
  return Boolean(event.dataTransfer?.types.includes("Files"));
}
