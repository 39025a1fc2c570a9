/** The scene's sound as a file: the studio makes it, the page shows how far it is, then it is fetched. */
import { byId, disclose, setHidden, setText } from "./dom.js";
import { announce, done, refused } from "./notices.js";
import * as api from "./project_api.js";
import { stored } from "./stored.js";

const KEPT = "tableread.sound";
const FIRST_LOOK_MS = 150;
const LONGEST_WAIT_MS = 1_000;
const MOST_UNREACHED = 30;

export class SoundExport {
  #project;
  #check;
  #running = null;
  #format = byId("sound-format");
  #loudness = byId("sound-loudness");
  #lufs = byId("sound-lufs");
  #even = byId("sound-even");

  /** @param {import("./project.js").Project} project @param {() => boolean} check whether there is sound at all */
  constructor(project, check) {
    this.#project = project;
    this.#check = check;
    disclose(byId("download"), byId("sound-form"));
    this.#recall(stored.json(KEPT, {}));
    this.#loudness.addEventListener("change", () => this.#showLevel());
    byId("sound-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save();
    });
    byId("sound-cancel").addEventListener("click", () => this.#cancel());
    project.addEventListener("opened", () => setText(byId("sound-result"), ""));
  }

  #recall({ format, loudness, lufs, even }) {
    choose(this.#format, format);
    choose(this.#loudness, loudness);
    if (Number.isFinite(lufs)) this.#lufs.value = lufs;
    this.#even.checked = even === true;
    this.#showLevel();
  }

  #showLevel() {
    const other = this.#loudness.value === "other";
    this.#lufs.disabled = !other; // a field that isn't shown must not hold the form back
    setHidden(byId("sound-lufs-part"), !other);
  }

  /** What is wished now, kept for the next time. */
  #wish() {
    const lufs = this.#lufs.valueAsNumber;
    const chosen = { format: this.#format.value, loudness: this.#loudness.value, even: this.#even.checked };
    stored.set(KEPT, JSON.stringify({ ...chosen, lufs }));
    const loudness = chosen.loudness === "other" ? lufs : chosen.loudness;
    return { format: chosen.format, loudness, even_voices: chosen.even };
  }

  async #save() {
    if (this.#running || !this.#check()) return;
    const run = { projectId: this.#project.id, exportId: null, stopped: false };
    this.#running = run;
    this.#show(0, "The file is being made.");
    try {
      await this.#project.flush();
      const made = await this.#followed(run, await api.beginSound(run.projectId, this.#wish()));
      this.#ended(run, made);
    } catch (error) {
      if (run.stopped) return;
      this.#hide(error.message); // on a phone the form covers the notice
      refused("The sound can't be saved", error);
    }
  }

  /** Wait for the end of an export, and show its way. */
  async #followed(run, begun) {
    run.exportId = begun.export_id;
    if (run.stopped) await this.#stop(run);
    let state = begun;
    for (let wait_ms = FIRST_LOOK_MS; state.state === "running" && !run.stopped; wait_ms *= 1.3) {
      byId("sound-share").value = state.share;
      await new Promise((resume) => setTimeout(resume, Math.min(wait_ms, LONGEST_WAIT_MS)));
      if (!run.stopped) state = await this.#look(run);
    }
    return state;
  }

  /** A studio that can't be reached for a while goes on all the same. */
  async #look(run) {
    for (let tries = 1; ; tries += 1) {
      try {
        return await api.sound(run.projectId, run.exportId);
      } catch (error) {
        if (run.stopped) return { state: "cancelled" };
        if (error.kind !== "Unreachable" || tries >= MOST_UNREACHED) throw error;
        await new Promise((resume) => setTimeout(resume, LONGEST_WAIT_MS));
      }
    }
  }

  #ended(run, { state, message, measured }) {
    if (run.stopped) return; // the page has gone on already
    if (state === "cancelled") return this.#hide("Stopped; nothing was saved.");
    if (state === "failed") throw new Error(message);
    const link = document.createElement("a");
    link.href = api.soundUrl(run.projectId, run.exportId);
    link.download = "";
    link.click();
    this.#hide(["Saved.", level(measured), ...measured.remarks].join(" "));
    if (byId("sound-form").hidden) done(`The sound is saved. ${level(measured)}`);
  }

  async #cancel() {
    const run = this.#running;
    if (!run || run.stopped) return;
    run.stopped = true;
    this.#hide("Stopped; nothing was saved.");
    announce("Stopped; nothing was saved.");
    if (run.exportId) await this.#stop(run);
  }

  async #stop(run) {
    try {
      await api.stopSound(run.projectId, run.exportId);
    } catch (error) {
      // One that is over already is stopped, too.
      if (error.kind !== "NotFound") refused("The file can't be stopped", error);
    }
  }

  #show(share, told) {
    byId("sound-share").value = share;
    this.#swap(true);
    setText(byId("sound-result"), told);
  }

  #hide(told) {
    this.#running = null;
    this.#swap(false);
    setText(byId("sound-result"), told);
  }

  /** Either *Save* or *Cancel* is there, and keeps the focus of the other. */
  #swap(running) {
    const [save, cancel] = [byId("sound-save"), byId("sound-cancel")];
    const held = document.activeElement === (running ? save : cancel);
    setHidden(save, running);
    setHidden(cancel, !running);
    setHidden(byId("sound-share"), !running);
    byId("download").dataset.busy = String(running);
    if (held) (running ? cancel : save).focus();
  }
}

function choose(select, value) {
  if ([...select.options].some((option) => option.value === value)) select.value = value;
}

/** @returns {string} what the file holds */
function level({ loudness_lufs: lufs, true_peak_db: peak }) {
  const loudness = lufs === null ? "Too quiet for LUFS" : `${minus(lufs)} LUFS`;
  return `${loudness}, true peak ${minus(peak)} dB.`;
}

function minus(number) {
  return number.toFixed(1).replace("-", "−");
}
