/** The header: the voice engine's state, idle countdown and set-up, asked for every second. */
import * as api from "./api.js";
import { byId, disclose, fromTemplate, setData, setHidden, setText } from "./dom.js";
import { clock, count, memory } from "./format.js";
import { notice, refused } from "./notices.js";

const AWAKE_MS = 1000;
const HIDDEN_MS = 5000;
const WORDS = {
  unloaded: "not loaded",
  loading: "loading…",
  loaded: "ready",
  unloading: "unloading…",
  failed: "failed",
};

/** Event "state" with `detail` the studio's state. */
export class ModelPanel extends EventTarget {
  #offered = null;
  #timeout = /** @type {HTMLSelectElement} */ (byId("model-timeout"));
  #atOnce = /** @type {HTMLInputElement} */ (byId("model-at-once"));

  constructor() {
    super();
    disclose(byId("model-chip"), byId("model-panel"));
    this.#press("model-load", "The model can't be loaded", api.loadModel);
    this.#press("model-stop", "The load can't be stopped", api.cancelLoad);
    this.#press("model-unload", "The model can't be unloaded", api.unloadModel);
    this.#timeout.addEventListener("change", () => this.#setTimeout());
    this.#atOnce.addEventListener("change", () => this.#setAtOnce());
  }

  /** Ask for the state again and again; slower while the tab is hidden. */
  async watch() {
    await this.refresh();
    setTimeout(() => this.watch(), document.hidden ? HIDDEN_MS : AWAKE_MS);
  }

  /** Ask for the state once. */
  async refresh() {
    try {
      this.#show(await api.state());
      notice("offline");
    } catch (error) {
      if (error.status === 429) return; // busy, not gone
      setText(byId("model-state"), "out of reach");
      notice("offline", { kind: "error", title: "Connection lost", text: error.message });
    }
  }

  #show(state) {
    this.#chip(state);
    this.#panel(state);
    this.#setup(state.setup);
    const text = offersSetup(state.setup) ? null : state.auto_reason || null;
    notice("draft", { kind: "info", title: "You hear the draft voice.", text });
    this.dispatchEvent(new CustomEvent("state", { detail: state }));
  }

  #chip({ backend, model }) {
    setText(byId("model-title"), backend.title);
    setData(byId("model-chip"), "state", model.state);
    setText(byId("model-state"), chipWords(model));
  }

  #panel({ backend, backends, model, engine }) {
    setText(byId("model-name"), backend.title);
    setText(byId("model-message"), model.message ?? "");
    setHidden(byId("model-progress"), model.state !== "loading");
    showProgress(byId("model-progress"), model.fraction);
    setHidden(byId("model-stop"), model.state !== "loading");
    setHidden(byId("model-load"), model.state === "loading");
    byId("model-load").disabled = model.state !== "unloaded" && model.state !== "failed";
    byId("model-unload").disabled = model.state !== "loaded";
    this.#facts(model, engine);
    this.#showTimeout(model);
    if (document.activeElement !== this.#atOnce) this.#atOnce.value = String(engine.max_concurrency);
    setText(byId("model-slots"), slotWords(engine));
    this.#offer(backends, backend.name);
  }

  #setup(setup) {
    const { state, message, fraction, detail } = setup;
    setHidden(byId("setup"), state !== "installing");
    setText(byId("setup-message"), message);
    byId("setup").title = detail ?? "";
    showProgress(byId("setup-progress"), fraction);
    notice("setup", {
      kind: state === "failed" ? "warning" : "info",
      title: "The model packages are not installed.",
      text: offersSetup(setup) ? `${message} ${detail ?? ""}`.trim() : null,
      act: { label: state === "failed" ? "Try again" : "Install", press: () => this.#install() },
    });
  }

  async #install() {
    try {
      await api.startSetup();
    } catch (error) {
      refused("The installation can't begin", error);
    }
    await this.refresh();
  }

  #facts(model, engine) {
    const used = model.memory_bytes ? memory(model.memory_bytes) : "—";
    table(byId("model-facts"), [
      ["State", chipWords(model)],
      ["Memory", used],
      ["Last load or unload", memoryChange(model)],
      ["Being read", `${engine.in_flight} of at most ${engine.slots ?? engine.max_concurrency}`],
      ["Waiting", String(engine.queued)],
      ["So far", `${count(model.loads, "load")}, ${count(model.unloads, "unload")}`],
    ]);
  }

  #showTimeout({ idle_timeout_s: seconds, eviction_enabled: enabled }) {
    if (document.activeElement === this.#timeout) return;
    const value = String(enabled ? seconds : 0);
    const known = [...this.#timeout.options].some((option) => option.value === value);
    if (!known) this.#timeout.add(new Option(`after ${clock(seconds)}`, value));
    this.#timeout.value = value;
    this.#timeout.disabled = !enabled;
  }

  /** Rows stay as long as what they say does: a focused choice keeps its focus. */
  #offer(backends, chosen) {
    const shown = JSON.stringify([backends, chosen]);
    if (shown === this.#offered) return;
    this.#offered = shown;
    const able = backends.toSorted((one, other) => Boolean(one.reason) - Boolean(other.reason));
    const rows = able.map((backend) => this.#backendRow(backend, chosen));
    byId("backends").replaceChildren(...rows);
  }

  #backendRow({ name, title, reason, to_fetch: toFetch }, chosen) {
    const row = fromTemplate("backend-template");
    const choice = row.querySelector("input");
    choice.value = name;
    choice.checked = name === chosen;
    choice.disabled = Boolean(reason);
    choice.addEventListener("change", () => this.#choose(name));
    setText(row.querySelector(".backend-title"), title);
    setText(row.querySelector(".backend-note"), reason ?? toFetch ?? "");
    return row;
  }

  async #choose(name) {
    try {
      await api.chooseBackend(name);
    } catch (error) {
      this.#offered = null;
      refused("This voice can't be chosen", error);
    }
    await this.refresh();
  }

  async #setTimeout() {
    try {
      await api.setTimeoutSeconds(Number(this.#timeout.value));
    } catch (error) {
      refused("The time can't be set", error);
    }
    this.#timeout.blur();
    await this.refresh();
  }

  async #setAtOnce() {
    try {
      if (this.#atOnce.validity.valid) await api.setConcurrency(this.#atOnce.valueAsNumber);
    } catch (error) {
      refused("The number can't be set", error);
    }
    this.#atOnce.blur();
    await this.refresh();
  }

  #press(id, title, act) {
    byId(id).addEventListener("click", async () => {
      try {
        await act();
      } catch (error) {
        refused(title, error);
      }
      await this.refresh();
    });
  }
}

function chipWords(model) {
  if (model.state === "loaded" && model.active > 0) return "speaking";
  if (model.state === "loading" && model.fraction !== null) {
    return `loading, ${Math.floor(100 * model.fraction)} %`;
  }
  if (model.state === "loaded" && model.unload_in_s !== null) {
    return `unloads in ${clock(model.unload_in_s)}`;
  }
  return WORDS[model.state];
}

/** An engine that reads many lines in one pass has slots, and the number above is no matter to it. */
function slotWords({ slots }) {
  return slots ? `This voice reads up to ${slots} lines in one pass, whatever the number says.` : "";
}

function showProgress(bar, fraction) {
  if (fraction === null) bar.removeAttribute("value");
  else bar.value = fraction;
}

function offersSetup({ state }) {
  return state === "missing" || state === "failed";
}

function memoryChange({ memory_before: before, memory_after: after }) {
  if (!before || !after) return "—";
  const told = `${memory(before.resident_bytes)} to ${memory(after.resident_bytes)}`;
  if (before.device_bytes === null) return told;
  return `${told}; on the device ${memory(before.device_bytes)} to ${memory(after.device_bytes)}`;
}

function table(list, facts) {
  while (list.children.length < facts.length * 2) {
    list.append(document.createElement("dt"), document.createElement("dd"));
  }
  facts.flat().forEach((text, idx) => setText(list.children[idx], text));
}
