/** The library of voices under the cast: search, tags, listen, open, add, take from a file, restore. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { arrangeRows, byId, focusedElement, fromTemplate, safeColour, setHidden, setText } from "../core/dom.js";
import { fold, formatFullDay, formatLength } from "../core/format.js";
import { showDone, showError } from "../core/notices.js";
import { RowFocus } from "../core/row_focus.js";
import { t, translateServer } from "../core/texts.js";
import { PreviewButton } from "../playback/preview_button.js";
import { SamplePanel } from "./sample_panel.js";
import { confirmRemoval } from "./sheet.js";
import { presetLabel } from "./voice_details.js";
import { VoicePanel } from "./voice_panel.js";

/** @import { RemovedVoice } from "../core/types" */

/** Voices that were removed, for as long as they can be restored. */
export class RemovedVoices {
  #shown = "[]";

  /** @param {RemovedVoice[]} removed the latest first */
  show(removed) {
    const shown = JSON.stringify(removed);
    if (shown === this.#shown) return;
    this.#shown = shown;
    setHidden(byId("library-removed"), removed.length === 0);
    setText(byId("library-removed-count"), `(${removed.length})`);
    byId("library-removed-list").replaceChildren(...removed.map((one) => this.#row(one)));
  }

  #row({ speaker_id: id, name, removed_s }) {
    const row = fromTemplate("gone-template");
    setText(row.querySelector(".gone-name"), name);
    setText(row.querySelector(".gone-day"), formatFullDay(1000 * removed_s));
    const [back, away] = row.querySelectorAll("button");
    back.ariaLabel = t`Restore ${name}`;
    back.addEventListener("click", () =>
      this.#try(t`Couldn’t restore this voice`, async () => {
        const speaker = await api.restoreSpeaker(id);
        showDone(t`${speaker.name} restored.`);
      }));
    away.ariaLabel = t`Delete ${name} for good`;
    away.addEventListener("click", () =>
      confirmRemoval(t`Delete ${name} for good?`, t`Its recordings can’t be restored afterwards.`, () =>
        this.#try(t`Couldn’t delete this voice`, async () => {
          await api.forgetSpeaker(id);
          showDone(t`${name} deleted.`);
        })));
    return row;
  }

  async #try(title, act) {
    try {
      await act();
      byId("voice-new").focus();
    } catch (error) {
      showError(title, error);
    }
    bus.emit("library.edited");
  }
}

const SHOWN_TAGS = 24;
/** Emits "library.loaded" and "library.changed". */
export class LibraryPanel {
  #sound = new PreviewButton();
  #focus = new RowFocus(byId("library"), ".voice-open");
  #sample = new SamplePanel(this.#sound);
  #panel;
  #removed = new RemovedVoices();
  #offer = null;
  #search = byId("voice-search");
  #library = [];
  #known = null;
  #asked = 0;
  #isNew = true;
  #tags = new Set();
  #rows = new Map();

  /** @param {import("../document/project.js").Project} project */
  constructor(project) {
    this.#panel = new VoicePanel(project, this.#sound, this.#sample);
    const isShown = (fault) => this.#panel.tell(fault) || this.#sample.tell(fault);
    this.#sound.events.on("fault", (fault) => isShown(fault) || showError(t`Couldn’t play it`, fault));
    bus.on("engine.state", (state) => this.#follow(state));
    bus.on("library.edited", () => this.#reload());
    bus.on("sample.kept", (kept) => this.#added(kept));
    bus.on("cast.sampleWanted", ({ name }) => this.#sample.begin({ name }));
    this.#search.addEventListener("input", () => this.#show());
    byId("voice-new").addEventListener("click", () => this.#sample.begin({}));
    this.#offerFile();
  }

  /** Start a new voice with a recording. @param {File} file */
  begin(file) {
    this.#sample.begin({ file });
  }

  /** Fetch the library again when the studio's state says that it changed. */
  #follow({ speakers, backend, model }) {
    const known = JSON.stringify([speakers, backend.name, model.state === "loaded"]);
    if (known === this.#known) return;
    this.#known = known;
    this.#reload();
  }

  async #reload() {
    const asked = (this.#asked += 1);
    try {
      const found = await api.readLibrary();
      if (asked === this.#asked) this.#take(found);
    } catch (error) {
      this.#known = null;
      showError(t`Couldn’t show the voices`, error);
    }
  }

  #take({ speakers, problems, removed, offer }) {
    const first = this.#isNew;
    this.#isNew = false;
    this.#library = speakers;
    this.#offer = offer;
    bus.emit("library.loaded", { speakers, offer });
    this.#removed.show(removed);
    const rows = new Map();
    for (const speaker of speakers) {
      const key = JSON.stringify([speaker, offer.builtin_voice]);
      rows.set(key, this.#rows.get(key) ?? this.#row(speaker));
    }
    this.#rows = rows;
    byId("library-problems").replaceChildren(...problems.map(problem));
    this.#showTags();
    this.#show();
    if (!first) bus.emit("library.changed");
  }

  #added({ speaker, made }) {
    const name = speaker.name;
    this.#panel.refresh(speaker);
    this.#reload();
    if (made === "mended") return this.#panel.mended();
    const text = made === "voice" ? t`Voice set for ${name}.` : t`Sample added for ${name}.`;
    return showDone(text);
  }

  #show() {
    const wanted = fold(this.#search.value).split(/\s+/).filter(Boolean);
    const matches = this.#library.map((speaker) => this.#matches(speaker, wanted));
    const rows = [...this.#rows.values()].filter((_, idx) => matches[idx]);
    const held = focusedElement()?.closest("#library .voice");
    const control = focusedElement()?.classList[0];
    arrangeRows(byId("library"), rows);
    const replacement = held && !held.isConnected && rows.find(({ dataset }) => dataset.id === held.dataset.id);
    this.#focus.mark(replacement || undefined);
    if (replacement) replacement.querySelector(`.${control}`).focus();
    const all = this.#library.length;
    setText(byId("library-count"), rows.length < all ? t`${rows.length} of ${all}` : all ? String(all) : "");
    setHidden(byId("library-search"), all < 2);
    setHidden(byId("library-empty"), all > 0);
    setHidden(byId("library-none"), rows.length > 0 || all === 0);
  }

  #matches({ name, language, tags, samples, description, preset }, wanted) {
    const folded = new Set(tags.map(fold));
    if (![...this.#tags].every((tag) => folded.has(tag))) return false;
    const moods = samples.map(({ mood }) => mood);
    const text = [name, language, description, preset, ...tags, ...moods].filter(Boolean);
    const searched = fold(text.join(" "));
    return wanted.every((word) => searched.includes(word));
  }

  #showTags() {
    const uses = new Map();
    for (const tag of this.#library.flatMap(({ tags }) => tags)) {
      const [shown, number] = uses.get(fold(tag)) ?? [tag, 0];
      uses.set(fold(tag), [shown, number + 1]);
    }
    this.#tags = new Set([...this.#tags].filter((tag) => uses.has(tag)));
    const most = [...uses].sort(([, a], [, b]) => b[1] - a[1]).slice(0, SHOWN_TAGS);
    const focused = focusedElement()?.dataset.tag;
    byId("voice-tags").replaceChildren(...most.map(([key, [tag]]) => this.#tagButton(key, tag)));
    if (focused) byId("voice-tags").querySelector(`[data-tag="${CSS.escape(focused)}"]`)?.focus();
  }

  #tagButton(key, tag) {
    const button = fromTemplate("tag-template");
    setText(button, tag);
    button.dataset.tag = key;
    button.setAttribute("aria-pressed", String(this.#tags.has(key)));
    button.addEventListener("click", () => {
      if (!this.#tags.delete(key)) this.#tags.add(key);
      button.setAttribute("aria-pressed", String(this.#tags.has(key)));
      this.#show();
    });
    return button;
  }

  #row(speaker) {
    const row = fromTemplate("voice-template");
    const { speaker_id: id, name, colour, samples, tags } = speaker;
    row.dataset.id = id;
    row.querySelector(".swatch").style.background = safeColour(colour);
    setText(row.querySelector(".voice-name"), name);
    setText(row.querySelector(".voice-kind"), kind(speaker, this.#offer));
    setText(row.querySelector(".voice-labels"), tags.join(", "));
    row.querySelector(".voice-open").addEventListener("click", () => this.#panel.open(speaker));
    const listen = row.querySelector(".voice-listen");
    listen.ariaLabel = t`Listen to ${name}`;
    setHidden(listen, samples.length === 0);
    listen.addEventListener("click", () =>
      this.#sound.toggle(listen, () => api.sampleUrl(id, samples[0].sample_id)),
    );
    return row;
  }

  #offerFile() {
    const field = byId("voice-file");
    byId("voice-import").addEventListener("click", () => field.click());
    field.addEventListener("change", async () => {
      const file = field.files[0];
      field.value = "";
      if (!file) return;
      try {
        this.#added({ speaker: await api.importVoice(file), made: "voice" });
      } catch (error) {
        showError(t`Couldn’t import this voice`, error);
      }
    });
  }
}

/** A short description of a voice. */
function kind({ samples, preset, description }, offer) {
  const [first, ...others] = samples;
  const own = offer.builtin_voice ? t`Auto voice` : t`No voice yet`;
  if (!first) return preset ? t`Engine voice: ${presetLabel(offer, preset)}` : description ? t`Described voice` : own;
  const seconds = first.seconds === null ? t`missing` : formatLength(first.seconds);
  const moods = [first, ...others].map(({ mood }) => mood).filter(Boolean);
  return [t`sample, ${seconds}`, ...moods].join(" · ");
}

function problem(text) {
  const row = document.createElement("li");
  setText(row, translateServer(text));
  return row;
}
