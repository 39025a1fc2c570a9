/** The details of a voice, saved during typing: typed text stays until the studio has accepted it. */
import { Bus } from "../core/bus.js";
import { byId, safeColour, setHidden, setText } from "../core/dom.js";
import { t } from "../core/texts.js";

/** @import { EngineOffer } from "../core/types" */

const text = (value) => value.trim() || null;
const FIELDS = {
  name: { id: "voice-name", read: (value) => value, show: ({ name }) => name },
  language: { id: "voice-language", read: text, show: ({ language }) => language ?? "" },
  tags: { id: "voice-labels", read: written, show: ({ tags }) => tags.join(", ") },
  colour: { id: "voice-colour", read: (value) => value, show: ({ colour }) => safeColour(colour) },
  preset: { id: "voice-preset", read: (value) => value || null, show: ({ preset }) => preset ?? "" },
  description: { id: "voice-description", read: text, show: ({ description }) => description ?? "" },
};
const field = (name) => byId(FIELDS[name].id);

export class VoiceDetails {
  /** @type {Bus<import("../core/types").DetailEvents>} */
  events = new Bus();
  #shown = new Map();
  #refused = new Map();
  #speaker = null;

  constructor() {
    for (const name of Object.keys(FIELDS)) {
      field(name).addEventListener("change", () => this.events.emit("changed"));
    }
    byId("voice-details").addEventListener("submit", (event) => {
      event.preventDefault();
      this.events.emit("save");
    });
  }

  /** Start with a voice, with nothing typed. */
  begin(speaker, offer) {
    this.#shown.clear();
    this.#refused.clear();
    this.show(speaker, offer);
  }

  /** Show a voice; fields with unsaved text don't change. */
  show(speaker, offer) {
    this.#speaker = speaker;
    const typed = new Set(this.#typed());
    this.offer(offer, typed.has("preset"));
    for (const [name, { show }] of Object.entries(FIELDS)) {
      if (!typed.has(name)) this.#put(name, show(speaker));
    }
  }

  /** @param {EngineOffer} offer what the engine offers */
  offer(offer, keepPreset = this.#typed().includes("preset")) {
    if (!offer || !this.#speaker) return;
    const presets = offer.presets;
    const chosen = keepPreset ? field("preset").value : this.#speaker.preset;
    fillPresets(field("preset"), presets, chosen, t`None (use the sample)`);
    if (!keepPreset) this.#shown.set("preset", field("preset").value);
    setHidden(field("preset").closest("label"), presets.length === 0 && !chosen);
    const describes = offer.described_voices || offer.instructions;
    setHidden(field("description").closest("label"), !describes && !this.#speaker.description);
    const isManner = offer.instructions && (Boolean(chosen) || !offer.described_voices);
    setText(byId("voice-description-word"), isManner ? t`Delivery` : t`Describe the voice`);
    field("description").placeholder = isManner ? t`calmly, with a smile` : "";
  }

  /** The unsaved values, as a request body; null if there are none. */
  get body() {
    return this.#body(this.#typed());
  }

  /** The same without values that were refused. */
  get fresh() {
    return this.#body(this.#typed().filter((name) => this.#refused.get(name) !== field(name).value));
  }

  /** Record values that were accepted. @param {object} body */
  taken(body) {
    for (const name of Object.keys(body)) {
      const { read } = FIELDS[name];
      if (same(read(field(name).value), body[name])) this.#shown.set(name, field(name).value);
    }
  }

  /** Record values that were refused. @param {object} body */
  refused(body) {
    for (const name of Object.keys(body)) this.#refused.set(name, field(name).value);
  }

  #typed() {
    return [...this.#shown].filter(([name, shown]) => field(name).value !== shown).map(([name]) => name);
  }

  #body(names) {
    const read = (name) => [name, FIELDS[name].read(field(name).value)];
    return names.length ? Object.fromEntries(names.map(read)) : null;
  }

  #put(name, value) {
    if (field(name).value !== value) field(name).value = value;
    this.#shown.set(name, field(name).value);
  }
}

/** Offer a backend's own voices; an unknown one stays selected. */
export function fillPresets(select, presets, chosen, none) {
  const options = presets.map(({ preset_id: id, label }) => new Option(label, id));
  const known = !chosen || presets.some(({ preset_id: id }) => id === chosen);
  if (!known) options.push(new Option(t`${chosen} (another engine’s)`, chosen));
  if (none) options.unshift(new Option(none, ""));
  select.replaceChildren(...options);
  select.value = chosen ?? options[0]?.value ?? "";
}

/** The tags in a text, separated by commas. */
function written(typed) {
  return typed.split(",").map((tag) => tag.trim()).filter(Boolean);
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other);
}
