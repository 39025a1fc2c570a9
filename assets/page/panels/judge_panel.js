/** How good the checks are on this project's takes: judged on demand, and said beside the setting that uses them. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId, setHidden, setText } from "../core/dom.js";
import { formatAgo, formatCount } from "../core/format.js";
import { showError } from "../core/notices.js";
import { t, translateServer } from "../core/texts.js";

/** @import { Judgement, JudgedShare } from "../core/types" */

const ASK_AGAIN_MS = 500;

export class JudgePanel {
  #project;
  #button = byId("judge");
  #share = byId("judge-share");
  /** @type {Judgement | null} */
  #known = null;
  #timer = 0;

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#project = project;
    this.#button.addEventListener("click", () => this.#press());
    bus.on("project.opened", () => {
      this.#show(null);
      this.#ask();
    });
  }

  get #running() {
    return this.#known?.state === "running";
  }

  async #press() {
    const { id } = this.#project;
    try {
      if (this.#running) await api.stopJudging(id);
      else this.#take(id, await api.startJudging(id));
    } catch (error) {
      showError(t`Couldn’t test the checks`, error);
    }
  }

  async #ask() {
    const { id } = this.#project;
    try {
      this.#take(id, await api.readJudgement(id));
    } catch (error) {
      if (id === this.#project.id && this.#running) this.#show({ ...this.#known, state: "failed", message: error.message });
    }
  }

  /** @param {string} id of the project that was asked for @param {Judgement} judgement */
  #take(id, judgement) {
    if (id !== this.#project.id) return; // another one was opened meanwhile
    this.#show(judgement);
    clearTimeout(this.#timer);
    if (this.#running) this.#timer = setTimeout(() => this.#ask(), ASK_AGAIN_MS);
  }

  /** @param {Judgement | null} judgement */
  #show(judgement) {
    this.#known = judgement;
    setText(this.#button, this.#running ? t`Stop` : t`Test the checks`);
    setHidden(this.#share, !this.#running);
    this.#share.value = judgement?.total ? judgement.done / judgement.total : 0;
    setText(byId("judge-result"), judgement ? describe(judgement) : "");
    const faults = judgement?.faults ?? [];
    setHidden(byId("judge-details"), faults.length === 0);
    byId("judge-rows").replaceChildren(...faults.map(rowOf));
  }
}

/** @param {Judgement} judgement @returns {string} one or more sentences */
function describe({ state, message, judged_at: at, faults, off, too_few: few }) {
  if (state === "running") return t`Planting faults in copies of your takes; this takes a few seconds per voice.`;
  if (state === "failed") return translateServer(message ?? "");
  if (!at) return state === "cancelled" ? t`Stopped.` : "";
  const found = faults.reduce((sum, one) => sum + one.found.hits, 0);
  const planted = faults.reduce((sum, one) => sum + one.found.trials, 0);
  const missed = listMissed(faults);
  return [
    state === "cancelled" ? t`Stopped. This result is from before.` : "",
    t`Tested ${formatAgo(at)}: the checks found ${found} of ${planted} faults planted in your takes.`,
    missed ? t`None was found of: ${missed}.` : "",
    ...off.map((one) => translateServer(one.message)),
    ...few.map((one) => t`${one.voice} has ${formatCount(one.takes, "take")}, too few to test with.`),
  ].join(" ").trim();
}

/**
 * The faults of which none was found, in whatever voice: those the checks can't be relied on for.
 *
 * @param {Judgement["faults"]} faults
 */
function listMissed(faults) {
  const found = new Set(faults.filter((one) => one.found.hits > 0).map((one) => one.label));
  const missed = new Set(faults.map((one) => one.label).filter((label) => !found.has(label)));
  return [...missed].map(translateServer).join("; ");
}

/** @param {Judgement["faults"][number]} fault */
function rowOf({ voice, language, label, found, alarms }) {
  const row = document.createElement("tr");
  for (const text of [language ? `${voice}, ${language}` : voice, translateServer(label), shown(found), shown(alarms)]) {
    const cell = document.createElement("td");
    cell.dir = "auto";
    setText(cell, text);
    row.append(cell);
  }
  return row;
}

/** @param {JudgedShare} share */
function shown({ rate, low, high }) {
  return t`${rate} (${low} to ${high})`;
}
