/** The samples of a voice, and earlier recordings that can be restored. */
import * as api from "../core/api.js";
import { Bus } from "../core/bus.js";
import { arrangeRows, byId, focusedElement, fromTemplate, setHidden, setText } from "../core/dom.js";
import { formatFullDay, formatLength } from "../core/format.js";
import { t } from "../core/texts.js";
import { confirmRemoval } from "./sheet.js";

const CONSENT = t`I have the right to use this voice: it is mine, or its owner agreed to have it cloned.`;
const TYPED = [".sample-mood", ".sample-transcript"];

export class VoiceSamples {
  /** @type {Bus<import("../core/types").SampleListEvents>} */
  events = new Bus();
  #sound;
  #speaker = null;
  #rows = new Map();

  /** @param {import("../playback/preview_button.js").PreviewButton} sound */
  constructor(sound) {
    this.#sound = sound;
  }

  /** Show a voice's samples; unchanged rows stay, with the text that is typed in them. */
  show(speaker) {
    const other = speaker.speaker_id !== this.#speaker?.speaker_id;
    this.#speaker = speaker;
    const previousRows = other ? new Map() : this.#rows;
    this.#rows = new Map();
    const rows = speaker.samples.map((sample) => {
      const { sample_id: id } = sample;
      const about = JSON.stringify([sample, this.#undoOf(id)?.former_id, this.#originalOf(id)?.former_id]);
      const known = previousRows.get(id);
      const row = known?.about === about ? known.row : this.#renewedRow(sample, known?.row);
      this.#rows.set(id, { about, row, consent: Boolean(sample.consent_at) });
      return row;
    });
    arrangeRows(byId("voice-samples"), rows);
    this.#showGone();
  }

  /** A change was refused: reset the tick to the studio's value, and keep typed text. */
  refused() {
    for (const { row, consent } of this.#rows.values()) {
      row.querySelector(".sample-consent").checked = consent;
    }
  }

  /** The latest earlier recording of a sample; undefined if there is none. */
  #undoOf(sampleId) {
    return this.#speaker.formers.findLast((one) => one.sample_id === sampleId && !one.removed && !one.original);
  }

  /** The other side of a denoised sample; undefined if there is none. */
  #originalOf(sampleId) {
    return this.#speaker.formers.find((one) => one.sample_id === sampleId && one.original);
  }

  get #id() {
    return this.#speaker.speaker_id;
  }

  #do(act, said = "", focus = null) {
    this.events.emit("request", { act, said, focus });
  }

  /** A row for a sample's current state, with the text that is being typed in its old row. */
  #renewedRow(sample, previous) {
    const row = this.#row(sample);
    for (const one of previous ? TYPED : []) {
      const [old, fresh] = [previous.querySelector(one), row.querySelector(one)];
      if (old.value !== old.dataset.shown) fresh.value = old.value;
      if (old === focusedElement()) queueMicrotask(() => fresh.focus());
    }
    const held = previous?.contains(focusedElement()) && focusedElement();
    if (held && held.tagName !== "TEXTAREA" && held.type !== "text") {
      queueMicrotask(() => row.querySelector(`.${held.classList[held.classList.length - 1]}`)?.focus());
    }
    return row;
  }

  #row(sample) {
    const row = fromTemplate("sample-template");
    const { sample_id: sampleId, mood, seconds, transcript, consent_at: consent } = sample;
    const what = mood ?? "main";
    const part = (name) => row.querySelector(`.sample-${name}`);
    const change = (body) => this.#do(() => api.changeSample(this.#id, sampleId, body));
    setHidden(part("main"), mood !== null);
    setHidden(part("mood"), mood === null);
    setText(part("length"), seconds === null ? "missing" : formatLength(seconds));
    fill(part("mood"), mood ?? "", t`Mood of the ${what} sample`);
    part("mood").addEventListener("change", () => change({ mood: part("mood").value }));
    fill(part("transcript"), transcript ?? "", t`Transcript of the ${what} sample`);
    part("transcript").addEventListener("change", () =>
      change({ transcript: part("transcript").value.trim() || null }),
    );
    part("consent").checked = Boolean(consent);
    setText(part("consent-text"), consent ? t`${CONSENT} (Confirmed on ${formatFullDay(consent)}.)` : CONSENT);
    part("consent").addEventListener("change", () => change({ consent: part("consent").checked }));
    part("listen").ariaLabel = t`Listen to the ${what} sample`;
    part("listen").addEventListener("click", () =>
      this.#sound.toggle(part("listen"), () => api.sampleUrl(this.#id, sampleId)),
    );
    part("mend").ariaLabel = t`Trim or clean up the ${what} sample`;
    part("mend").addEventListener("click", () =>
      this.events.emit("mend", sample));
    this.#offerUndo(part("undo"), sampleId, what);
    this.#offerOriginal(part("original"), part("exchange"), sampleId, what);
    part("remove").ariaLabel = t`Remove the ${what} sample`;
    part("remove").addEventListener("click", () => this.#remove(sampleId, what));
    return row;
  }

  #offerUndo(button, sampleId, what) {
    const version = this.#undoOf(sampleId);
    button.ariaLabel = t`Undo the change of the ${what} sample`;
    setHidden(button, !version);
    button.addEventListener("click", () =>
      this.#do(
        () => api.restoreSample(this.#id, version.former_id),
        t`The ${what} sample is unchanged again.`,
        "voice-title",
      ));
  }

  /** Of a denoised sample both recordings can be played, and one is used. */
  #offerOriginal(listen, exchange, sampleId, what) {
    const version = this.#originalOf(sampleId);
    for (const button of [listen, exchange]) setHidden(button, !version);
    listen.ariaLabel = t`Listen to the other recording of the ${what} sample`;
    listen.title = t`With and without noise: the one not in use`;
    exchange.ariaLabel = t`Use the other recording of the ${what} sample`;
    listen.addEventListener("click", () =>
      this.#sound.toggle(listen, () => api.sampleVersionUrl(this.#id, version.former_id)));
    exchange.addEventListener("click", () =>
      this.#do(
        () => api.restoreSample(this.#id, version.former_id),
        t`Switched the ${what} sample to the other recording.`,
        "voice-title",
      ));
  }

  #remove(sampleId, what) {
    const text = t`You can restore it for 30 days, in this voice’s panel.`;
    confirmRemoval(t`Remove the ${what} sample of ${this.#speaker.name}?`, text, () =>
      this.#do(
        () => api.removeSample(this.#id, sampleId),
        t`The ${what} sample was removed.`,
        "voice-sample-add",
      ));
  }

  #showGone() {
    const gone = this.#speaker.formers.filter(({ removed }) => removed).reverse();
    setHidden(byId("voice-gone"), gone.length === 0);
    byId("voice-gone-list").replaceChildren(...gone.map((version) => this.#goneRow(version)));
  }

  #goneRow({ former_id: versionId, mood, seconds, at }) {
    const row = fromTemplate("gone-template");
    const what = mood ?? "main";
    const long = seconds === null ? "" : `, ${formatLength(seconds)}`;
    setText(row.querySelector(".gone-name"), `${what}${long}`);
    setText(row.querySelector(".gone-day"), formatFullDay(at));
    const [back, away] = row.querySelectorAll("button");
    back.ariaLabel = t`Restore the ${what} sample`;
    back.addEventListener("click", () =>
      this.#do(
        () => api.restoreSample(this.#id, versionId),
        t`The ${what} sample was restored.`,
        "voice-title",
      ));
    away.ariaLabel = t`Delete the ${what} sample for good`;
    away.addEventListener("click", () =>
      confirmRemoval(t`Delete the ${what} sample for good?`, t`It can’t be restored afterwards.`, () =>
        this.#do(() => api.forgetSample(this.#id, versionId), t`Deleted.`, "voice-title"),
      ));
    return row;
  }
}

function fill(input, value, label) {
  input.value = value;
  input.dataset.shown = value;
  input.ariaLabel = label;
}
