/** Review links of the open project: made, listed with their last use, and ended. */
import * as api from "../core/api.js";
import { byId, fromTemplate, setHidden, setText } from "../core/dom.js";
import { formatDateTime } from "../core/format.js";
import { announce } from "../core/notices.js";
import { t } from "../core/texts.js";
import { Sheet } from "../voices/sheet.js";
import { copyText } from "./table_read.js";

export class ReviewLinks {
  #project;
  #sheet = new Sheet(byId("reviews"));

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    byId("reviews-open").addEventListener("click", () => this.#open());
    byId("reviews-make").addEventListener("click", () => this.#sheet.tries(() => this.#make()));
    byId("reviews-copy").addEventListener("click", () => copyText(byId("reviews-url")));
  }

  async #open() {
    this.#sheet.open();
    setHidden(byId("reviews-made"), true);
    byId("reviews-list").replaceChildren();
    byId("reviews-make").disabled = true; // until the studio says that there may be links
    if (await this.#sheet.tries(() => this.#load())) byId("reviews-make").disabled = false;
  }

  async #load() {
    const links = await api.listReviews(this.#project.id);
    byId("reviews-list").replaceChildren(...links.map((link) => this.#row(link)));
  }

  #row({ review_id: reviewId, made_at_s: made, used_at_s: used }) {
    const row = fromTemplate("review-template");
    setText(row.querySelector(".review-made"), t`Created ${formatDateTime(made)}`);
    setText(row.querySelector(".review-used"), used === null ? t`not opened yet` : t`last used ${formatDateTime(used)}`);
    const end = row.querySelector("button");
    end.ariaLabel = t`Revoke the link created ${formatDateTime(made)}`;
    end.addEventListener("click", () => this.#sheet.tries(() => this.#end(reviewId)));
    return row;
  }

  async #make() {
    const { path, public_url: base } = await api.makeReview(this.#project.id);
    const url = new URL(path, base ? `${base.replace(/\/$/, "")}/` : document.baseURI);
    byId("reviews-url").value = url.href;
    setHidden(byId("reviews-made"), false);
    byId("reviews-url").focus();
    byId("reviews-url").select();
    announce(t`Link created.`);
    await this.#load();
  }

  async #end(reviewId) {
    await api.endReview(this.#project.id, reviewId);
    setHidden(byId("reviews-made"), true);
    this.#sheet.say(t`Link revoked. Anyone who still has it open sees nothing new.`, "done");
    await this.#load();
    byId("reviews-make").focus();
  }
}
