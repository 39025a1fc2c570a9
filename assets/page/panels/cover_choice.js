/** The project's cover, the image that its sound files carry: chosen, shown, taken away. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, setHidden, setText } from "../core/dom.js";
import { announce, showError } from "../core/notices.js";
import { t } from "../core/texts.js";

/** A row of the form that saves the sound. */
export class CoverChoice {
  #project;
  #image = byId("cover-image");
  #file = byId("cover-file");

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    byId("cover-choose").addEventListener("click", () => this.#file.click());
    byId("cover-remove").addEventListener("click", () => this.#remove());
    byId("download").addEventListener("click", () => this.#look());
    this.#file.addEventListener("change", () => this.#choose());
    this.#image.addEventListener("load", () => this.#show(true));
    this.#image.addEventListener("error", () => this.#show(false));
    bus.on("project.opened", () => this.#show(false));
  }

  /** An image that isn't there is one that can't be loaded. */
  #look() {
    this.#image.setAttribute("src", api.coverUrl(this.#project.id));
  }

  #show(isThere) {
    setHidden(this.#image, !isThere);
    setHidden(byId("cover-remove"), !isThere);
    setText(byId("cover-choose"), isThere ? t`Replace` : t`Choose an image`);
  }

  async #choose() {
    const [image] = this.#file.files;
    this.#file.value = "";
    if (!image) return;
    try {
      await api.putCover(this.#project.id, image);
      this.#image.setAttribute("src", `${api.coverUrl(this.#project.id)}?at=${Date.now()}`);
      announce(t`Cover saved with the project.`);
    } catch (error) {
      showError(t`Couldn’t use this image`, error);
    }
  }

  async #remove() {
    try {
      await api.removeCover(this.#project.id);
      this.#image.removeAttribute("src");
      this.#show(false);
      byId("cover-choose").focus();
      announce(t`Cover removed.`);
    } catch (error) {
      showError(t`Couldn’t remove the cover`, error);
    }
  }
}
