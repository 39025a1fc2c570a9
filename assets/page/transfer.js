/** Files in: by the button, or by letting them fall on the page; each goes where it is of use. */
import { Exporting } from "./exporting.js";
import * as api from "./project_api.js";
import { announce, notice, refused } from "./notices.js";
import { byId, disclose, setHidden, setText } from "./dom.js";
import { isSound } from "./recordings.js";
import { tellBrought, tellOpened } from "./told.js";

const WORDS = {
  project: "Let go to import it as a new project",
  line: "Let go to add it as a recording",
  file: "Let go to play it in this line",
  voice: "Let go to make a voice of it",
};

export class Transfer {
  #parts;

  /** @param {object} parts projects, project, lines, recordings, speakers, show */
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
    projects.addEventListener("opened", () => {
      exporting.link();
      tellOpened({ name: project.view.name, notices: project.notices }, () => parts.show("script"));
    });
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

  /** All that was let go finds its place: sound in the scene or as a voice, everything else as projects. */
  async #drop(event, files) {
    const { lines, recordings } = this.#parts;
    const sounds = files.filter(isSound);
    const place = this.#place(event, sounds.length > 0);
    if (place === null) return;
    const lineId = lines.lineOf(event.target);
    if (place === "voice") this.#beginVoice(sounds);
    if (place === "file") await recordings.bringAll(sounds, lineId);
    if (place === "line") await recordings.bringAll(sounds, null, lineId ?? undefined);
    await this.#bring(files.filter((file) => !sounds.includes(file)));
  }

  #beginVoice([first, ...others]) {
    const names = others.map(({ name }) => name).join(", ");
    const text = others.length ? `Not taken: ${names}. Let go of one recording at a time.` : null;
    notice("drop", { kind: "warning", title: "A voice begins with one recording.", text, dismiss: () => {} });
    this.#parts.speakers.begin(first);
  }

  /** @param {File[]} files each becomes a project; the last one is opened */
  async #bring(files, input = null) {
    const brought = [];
    for (const file of files) {
      try {
        const body = await api.importFile(file);
        await this.#parts.projects.adopt(body);
        brought.push({ name: file.name, notices: body.notices });
        announce(`${file.name} is imported.`);
      } catch (error) {
        refused(`${file.name} can't be imported`, error);
      }
    }
    brought.slice(0, -1).forEach(tellBrought);
    if (input) input.value = "";
  }
}

function carriesFiles(event) {
  return Boolean(event.dataTransfer?.types.includes("Files"));
}
