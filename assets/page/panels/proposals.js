/** Edits that a program proposes: a notice, the changes line by line, and one step when they are accepted. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { askDialog, byId, fromTemplate, setHidden, setText } from "../core/dom.js";
import { formatCount } from "../core/format.js";
import { showDone, showError, showNotice } from "../core/notices.js";
import { t } from "../core/texts.js";

/** @import { Proposal, ProposedChange } from "../core/types" */

export class Proposals {
  #project;
  #dialog = byId("proposal");
  /** @type {Record<string, string>} */
  #waiting = {};
  /** The one that the notice is about. @type {string | null} */
  #noticed = null;

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    bus.on("engine.changed", ({ proposals }) => proposals && this.#follow(proposals));
    bus.on("project.shown", () => this.#follow(this.#waiting));
  }

  async #follow(waiting) {
    this.#waiting = waiting;
    const { id } = this.#project;
    const wanted = waiting[id] ?? null;
    if (wanted === this.#noticed) return;
    this.#noticed = wanted;
    if (this.#dialog.open) this.#dialog.close("later"); // what it shows was answered or replaced
    const proposal = wanted && (await this.#read(id));
    if (this.#noticed !== wanted) return;
    const press = () => this.#review();
    const title = proposal ? t`A program suggests ${formatCount(proposal.changes.length, "change")}.` : "";
    const text = proposal ? proposal.note || t`Nothing changes until you accept.` : null;
    showNotice("proposal", { title, text, act: { label: t`Review`, press }, dismiss: () => {} });
  }

  /** @returns {Promise<Proposal | null>} null if it is gone */
  async #read(id) {
    return api.readProposal(id).catch((error) => {
      if (error.status !== 404) showError(t`Couldn’t show the proposal`, error);
      return null;
    });
  }

  async #review() {
    const { id } = this.#project;
    await this.#project.flush(); // what was typed may concern the same lines
    const proposal = await this.#read(id);
    if (!proposal || id !== this.#project.id) return;
    this.#show(proposal);
    const answer = await askDialog(this.#dialog, "later");
    try {
      if (answer === "accept") await this.#accept(proposal);
      if (answer === "reject") await api.rejectProposal(id, proposal.proposal_id);
    } catch (error) {
      showError(t`Couldn’t answer the proposal`, error);
    }
  }

  async #accept({ proposal_id: proposalId, changes }) {
    const press = () => this.#project.travel("undo").catch((error) => showError(t`This can’t be undone`, error));
    await this.#project.accept(proposalId);
    showDone(t`${formatCount(changes.length, "change")} accepted.`, { label: t`Undo`, press });
  }

  /** @param {Proposal} proposal */
  #show({ state, note, changes }) {
    const expired = state !== "waiting";
    setText(byId("proposal-title"), expired ? t`This proposal is out of date` : `${formatCount(changes.length, "proposed change")}`);
    setText(byId("proposal-note"), expired ? t`The lines have changed since. Ask the program again.` : note);
    byId("proposal-accept").disabled = expired;
    byId("proposal-changes").replaceChildren(...changes.map((change) => this.#row(change)));
  }

  /** @param {ProposedChange} change */
  #row({ line_id: lineId, before, after }) {
    const row = fromTemplate("proposal-template");
    setText(row.querySelector(".proposal-place"), this.#placeOf(lineId, !before));
    for (const [part, said] of Object.entries({ del: before, ins: after })) {
      setHidden(row.querySelector(part), !said);
      if (said) setText(row.querySelector(`${part} .proposal-text`), said.speaker ? `${said.speaker}: ${said.text}` : said.text || t`Pause`);
    }
    return row;
  }

  /** Lines have the numbers that the page shows. */
  #placeOf(lineId, isNew) {
    const numbered = this.#project.lines.filter(({ kind }) => kind !== "silence");
    const at = numbered.findIndex(({ line_id: other }) => other === lineId) + 1;
    if (isNew) return lineId === null ? t`New first line` : at ? t`New, after line ${at}` : t`New`;
    return at ? t`Line ${at}` : t`Between the lines`;
  }
}
