/** Files in and out: import by the button or by letting them fall on the page, and export links. */
import * as api from "./project_api.js";
import { announce, notice, refused } from "./notices.js";
import { byId, disclose, setHidden } from "./dom.js";

export class Transfer {
  #projects;
  #project;

  /** @param {import("./projects.js").Projects} projects @param {import("./project.js").Project} project */
  constructor(projects, project) {
    this.#projects = projects;
    this.#project = project;
    disclose(byId("download"), byId("download-menu"));
    disclose(byId("export"), byId("export-menu"));
    byId("import").addEventListener("click", () => byId("import-file").click());
    byId("project-import").addEventListener("click", () => byId("import-file").click());
    byId("import-file").addEventListener("change", ({ target }) => this.#bring([...target.files], target));
    this.#listenForDrops();
    projects.addEventListener("opened", () => this.#link());
  }

  #link() {
    for (const link of document.querySelectorAll("a[data-format]")) {
      link.href = api.exportUrl(this.#project.id, link.dataset.format);
    }
  }

  #listenForDrops() {
    const veil = byId("drop-veil");
    const carriesFiles = (event) => event.dataTransfer?.types.includes("Files");
    // Gradio's own fields take the files that are dropped on them.
    const elsewhere = (event) => Boolean(event.target.closest?.("#add-speaker, #cast-column"));
    addEventListener("dragover", (event) => {
      if (!carriesFiles(event) || elsewhere(event)) return setHidden(veil, true);
      event.preventDefault();
      return setHidden(veil, false);
    });
    addEventListener("dragleave", ({ relatedTarget }) => relatedTarget ?? setHidden(veil, true));
    addEventListener("drop", (event) => {
      setHidden(veil, true);
      if (!carriesFiles(event) || elsewhere(event)) return;
      event.preventDefault();
      this.#bring([...event.dataTransfer.files]);
    });
  }

  /** @param {File[]} files each becomes a project; the last one is opened */
  async #bring(files, input = null) {
    for (const file of files) {
      try {
        const body = await api.importFile(file);
        await this.#projects.adopt(body);
        announce(`${file.name} is imported.`);
        notice("import", {});
      } catch (error) {
        refused(`${file.name} can't be imported`, error);
      }
    }
    if (input) input.value = "";
  }
}
