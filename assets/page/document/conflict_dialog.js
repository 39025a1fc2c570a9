/** Two people changed the same thing: both versions next to each other, and a choice. */
import { bus } from "../core/bus.js";
import { byId, fromTemplate, setHidden, setText } from "../core/dom.js";
import { showNotice } from "../core/notices.js";
import { t } from "../core/texts.js";
import { conflictQuestions, resolvedOps } from "./conflict_model.js";
import { differingLines } from "./script_text.js";

/** @typedef {{mine: string, theirs: string, keepMine: () => void, keepTheirs: () => void}} TwoTexts */

export class ConflictDialog {
  #dialog = byId("conflicts");
  #project;
  #answers = new Map();
  #script = null;
  #drawn = "";

  /** @param {import("./project.js").Project} project */
  constructor(project) {
    this.#project = project;
    bus.on("project.conflict", ({ isNew }) => (isNew || this.#dialog.open) && this.#open());
    bus.on("project.opened", () => this.#begin());
    byId("conflicts-later").addEventListener("click", () => this.#dialog.close());
    this.#dialog.addEventListener("close", () => this.#remind());
  }

  /** Two versions of the script. @param {TwoTexts} about */
  compare({ mine, theirs, keepMine, keepTheirs }) {
    const [own, other] = differingLines(mine, theirs);
    const question = { title: t`Script`, mine: own || "—", theirs: other || "—", keep: t`Keep mine` };
    const choose = (isMine) => {
      this.#script = null;
      return isMine ? keepMine() : keepTheirs();
    };
    this.#script = { question, choose };
    this.#open();
  }

  get #batches() {
    return this.#project.aside.filter(({ error }) => error.conflicts.length);
  }

  #begin() {
    this.#answers.clear();
    this.#script = null;
    this.#dialog.close();
    this.#remind();
  }

  /** An undecided conflict stays: the other version applies, and mine is stored until somebody chooses. */
  #remind() {
    this.#script = null;
    showNotice("conflict", {
      kind: "warning",
      title: t`Edited in two places.`,
      text: this.#batches.length ? t`Their version is used until you choose; yours is kept in this browser.` : null,
      act: { label: t`Compare`, press: () => this.#open() },
      dismiss: () => {}, // shown again at the next visit, as only a choice ends it
    });
  }

  #open() {
    showNotice("conflict", {});
    const asked = this.#batches.flatMap((batch) =>
      conflictQuestions(batch, this.#project)
        .filter(({ key }) => !this.#answersOf(batch).has(key))
        .map((question) => ({ question, choose: (isMine) => this.#choose(batch, question, isMine) })));
    if (this.#script) asked.push(this.#script);
    const drawn = JSON.stringify(asked.map(({ question }) => question));
    // What is asked already isn't drawn anew, as somebody may be about to press.
    if (!this.#dialog.open || drawn !== this.#drawn) byId("conflict-list").replaceChildren(...asked.map((one) => this.#row(one)));
    this.#drawn = drawn;
    if (!asked.length || this.#dialog.open) return;
    this.#dialog.showModal();
    // No button gets the focus, as the user may be typing.
    byId("conflicts-title").focus();
  }

  #row({ question, choose }) {
    const row = fromTemplate("conflict-template");
    setText(row.querySelector(".conflict-field"), question.title);
    setText(row.querySelector(".conflict-mine"), question.mine);
    setText(row.querySelector(".conflict-theirs"), question.theirs);
    const keep = row.querySelector(".keep-mine");
    setHidden(keep, question.keep === null);
    setText(keep, question.keep ?? "");
    const settle = (isMine) => {
      row.remove();
      choose(isMine);
      if (!byId("conflict-list").childElementCount) this.#dialog.close();
    };
    keep.addEventListener("click", () => settle(true));
    row.querySelector(".keep-theirs").addEventListener("click", () => settle(false));
    return row;
  }

  #answersOf(batch) {
    if (!this.#answers.has(batch)) this.#answers.set(batch, new Map());
    return this.#answers.get(batch);
  }

  /** Once all of a batch is decided, apply the rest of it. */
  #choose(batch, { key }, isMine) {
    const answers = this.#answersOf(batch).set(key, isMine);
    if (conflictQuestions(batch, this.#project).some((one) => !answers.has(one.key))) return;
    this.#answers.delete(batch);
    this.#project.settle(batch, resolvedOps(batch, answers, this.#project));
  }
}
