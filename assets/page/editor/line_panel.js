/** The panel of the selected lines: speaker, settings and actions. */
import { WHAT } from "./line_list.js";
import { bus, Bus } from "../core/bus.js";
import { afterPaint, byId, fromTemplate, isDirty, languageOptions, setHidden, setText } from "../core/dom.js";
import { fold, formatCount, formatLength } from "../core/format.js";
import { localStore } from "../core/local_store.js";
import { t, translateServer } from "../core/texts.js";
import { characterOf, newId, RATE_HZ } from "../document/document.js";
import { GAP } from "../playback/gaps.js";
import { recordingTitle } from "./line_list.js";

/** @import { EngineParam, Line, Parts, StudioState } from "../core/types" */

/** Sliders for the line parameters of the voice engine. */
export class ParamControls {
  /** @type {Bus<import("../core/types").ParamEvents>} */
  events = new Bus();
  #list = byId("params");
  #shown = null;
  #rows = new Map();
  #strays = null;
  #elsewhere = new Set();

  /** @param {EngineParam[]} params of the engine @param {string[]} elsewhere those with fields of their own */
  offer(params, elsewhere) {
    this.#elsewhere = new Set(elsewhere);
    const shown = JSON.stringify(params);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#rows.clear();
    this.#list.replaceChildren(...params.map((param) => this.#row(param)));
  }

  /**
   * @param {Line[]} lines whose values are shown; different ones are left open
   * @param {(line: Line, name: string) => string | number | boolean | undefined} inherited what a line has of its character
   */
  show(lines, inherited) {
    for (const [name, { param, field, number, reset }] of this.#rows) {
      const values = new Set(lines.map((line) => line.params?.[name] ?? inherited(line, name) ?? null));
      const shown = values.size === 1 ? [...values][0] : undefined;
      if (!isDirty(number)) number.value = shown === undefined ? "" : String(shown ?? param.default);
      if (!field.matches(":active")) field.value = String(shown ?? param.default);
      number.placeholder = shown === undefined ? t`Mixed` : "";
      const [backTo] = new Set(lines.map((line) => inherited(line, name)));
      reset.hidden = lines.every((line) => (line.params?.[name] ?? null) === null);
      reset.title = backTo === undefined ? "" : t`Back to ${lines[0].speaker}’s own: ${backTo}`;
      reset.setAttribute("aria-label", backTo === undefined ? t`${translateServer(param.label)}: engine default` : t`${translateServer(param.label)}: character’s value`);
    }
    this.#showStrays(lines);
  }

  /** Settings that the engine doesn't have: shown, and removable. */
  #showStrays(lines) {
    const all = lines.flatMap(({ params }) => Object.entries(params ?? {}));
    const strays = new Map();
    for (const [name, value] of all) {
      if (!this.#rows.has(name) && !this.#elsewhere.has(name)) {
        strays.set(name, (strays.get(name) ?? new Set()).add(String(value)));
      }
    }
    const shown = JSON.stringify([...strays].map(([name, values]) => [name, ...values]));
    if (shown === this.#strays) return;
    this.#strays = shown;
    setHidden(byId("strays-part"), strays.size === 0);
    byId("strays").replaceChildren(...[...strays].map(([name, values]) => this.#stray(name, values)));
  }

  #stray(name, values) {
    const row = fromTemplate("stray-template");
    setText(row.querySelector(".stray-name"), values.size > 1 ? t`${name}: mixed` : `${name}: ${[...values][0]}`);
    const remove = row.querySelector("button");
    remove.ariaLabel = t`Remove ${name}`;
    remove.addEventListener("click", () =>
      this.events.emit("changed", { name, value: null }));
    return row;
  }

  #row(param) {
    const row = fromTemplate("param-template");
    const [field, number, reset] = [".param-range", ".param-number", ".param-reset"].map((one) => row.querySelector(one));
    const label = translateServer(param.label);
    setText(row.querySelector(".param-label"), label);
    row.title = translateServer(param.help);
    for (const input of [field, number]) {
      Object.assign(input, { min: param.minimum, max: param.maximum, step: param.step });
      input.setAttribute("aria-label", label);
      input.addEventListener("change", () => this.#emitChange(param, input.value));
    }
    field.addEventListener("input", () => (number.value = field.value));
    reset.addEventListener("click", () => this.#emitChange(param, null));
    this.#rows.set(param.name, { param, field, number, reset });
    return row;
  }

  #emitChange({ name, minimum, maximum }, written) {
    const usable = written === null || (written !== "" && Number(written) >= minimum && Number(written) <= maximum);
    const value = written === null ? null : Number(written);
    if (usable) this.events.emit("changed", { name, value });
    else this.events.emit("refused");
  }
}

const MORE_KEY = "tableread.more";
const AS_WRITTEN = "as_written";

const field = (name) => byId(`field-${name}`);

/** The panel itself: fields and buttons for the selected lines. */
export class LinePanel {
  #parts;
  #params = new ParamControls();
  #languages = null;
  /** The moods in their list, as JSON. */
  #offered = "";
  #library = [];
  /** @type {boolean | null} */
  #hasTakes = null;
  #characters = null;

  /** @param {Pick<Parts, "project" | "selection" | "commands" | "playback" | "takes" | "show">} parts */
  constructor(parts) {
    this.#parts = parts;
    bus.on("project.changed", (change) => this.#changed(change));
    bus.on("project.meta", () => this.#names());
    bus.on("selection.changed", () => this.#show());
    bus.on("engine.state", ({ backend, speakers }) => this.#offer(backend, speakers));
    this.#params.events.on("changed", (change) => this.#setParam(change));
    this.#params.events.on("refused", () => this.#show());
    this.#listen();
    this.#show();
  }

  /** @param {StudioState['backend']} backend whose parameters and languages are offered @param {StudioState['speakers']} library voices with their moods */
  #offer({ params, languages, instructions, seeded }, library) {
    byId("act-again").title = seeded ? t`New take with another seed (R)` : t`New take, slightly different; this voice engine takes no seed (R)`;
    this.#library = library;
    this.#params.offer(params, instructions ? ["mood", "instruct", GAP, AS_WRITTEN] : ["mood", GAP, AS_WRITTEN]);
    setHidden(byId("instruct-part"), !instructions);
    if (JSON.stringify(languages) !== JSON.stringify(this.#languages)) {
      this.#languages = languages;
      this.#listLanguages(null);
    }
    this.#show();
  }

  /** Focus the field for a name that isn't in the dialog yet. */
  askSpeaker() {
    this.openMore();
    field("speaker").focus();
    field("speaker").select();
  }

  #listen() {
    const { commands, playback, selection } = this.#parts;
    byId("line-more").querySelector("summary").addEventListener("click", () => {
      if (this.#hasTakes) localStore.set(MORE_KEY, byId("line-more").open ? "closed" : "open");
    });
    const fields = {
      speaker: (text) => text.trim() && { speaker: text.trim() },
      language: (code) => ({ language: code || null }),
      seed: (text) => ({ seed: text === "" ? null : Math.trunc(Number(text)) }),
    };
    for (const [name, made] of Object.entries(fields)) {
      field(name).addEventListener("change", ({ target }) => {
        const change = target.validity.valid && made(target.value);
        if (change) commands.set(change, { group: `${name} ${selection.ids}` });
        this.#show();
      });
    }
    field("mood").addEventListener("change", ({ target }) =>
      this.#setParam({ name: "mood", value: target.value || null }));
    field("instruct").addEventListener("change", ({ target }) =>
      this.#setParam({ name: "instruct", value: target.value.trim() || null }));
    byId("as-written").addEventListener("change", ({ target }) =>
      this.#setParam({ name: AS_WRITTEN, value: target.checked || null }));
    for (const name of ["gap", "recording-gap"]) {
      field(name).addEventListener("change", ({ target }) => {
        if (target.validity.valid) this.#setParam({ name: GAP, value: target.value === "" ? null : target.valueAsNumber });
        this.#show();
      });
    }
    field("before").addEventListener("change", ({ target }) => this.#pause(target, -1));
    field("after").addEventListener("change", ({ target }) => this.#pause(target, 1));
    const buttons = {
      play: () => playback.playLine(selection.current),
      again: () => playback.again(selection.ids),
      lock: () => commands.lock(),
      duplicate: () => commands.duplicate(),
      up: () => commands.shift(-1),
      down: () => commands.shift(1),
      delete: () => commands.delete(),
    };
    for (const [name, act] of Object.entries(buttons)) byId(`act-${name}`).addEventListener("click", act);
    byId("speaker-names").dataset.for = "field-speaker";
  }

  #names() {
    const options = this.#parts.project.view.speakers.map(({ name }) => new Option(name, name));
    byId("speaker-names").replaceChildren(...options);
    const { characters } = this.#parts.project.view;
    if (characters === this.#characters) return;
    this.#characters = characters;
    this.#show();
  }

  #changed({ ids, order }) {
    const { selection } = this.#parts;
    if (order || selection.ids.some((lineId) => ids.has(lineId))) this.#showSoon();
  }

  #showSoon = afterPaint(() => this.#show());

  #show() {
    const { project, selection, takes } = this.#parts;
    const marked = selection.ids.map((lineId) => project.line(lineId)).filter(Boolean);
    const speech = marked.filter(({ kind }) => kind === "speech");
    setHidden(byId("line-empty"), marked.length > 0);
    setHidden(byId("line-acts"), marked.length === 0);
    setHidden(byId("line-fields"), speech.length === 0);
    this.#showMore(speech);
    setHidden(byId("act-again"), marked.length > 0 && speech.length === 0);
    this.#showRecording(marked.length === 1 && marked[0].kind === "audio" ? marked[0] : null);
    setText(byId("line-title"), marked.length > 1 ? formatCount(marked.length, "line") : this.#title(marked[0]));
    this.#showSpoken(marked.length === 1 && speech.length ? marked[0] : null);
    if (speech.length) this.#fill(speech);
    takes.show(speech.length === 1 ? speech[0] : null);
  }

  /** @param {Line | undefined} line the only one that is marked */
  #title(line) {
    if (!line) return t`Scene`;
    const kind = line.unspoken ? WHAT[line.unspoken] : { silence: t`Pause`, audio: t`Recording` }[line.kind];
    const spoken = this.#parts.project.lines.filter((one) => one.kind !== "silence");
    return kind ?? t`Line ${spoken.indexOf(line) + 1}`;
  }

  /** Show all of a line's settings. */
  openMore() {
    this.#parts.show("line");
    byId("line-more").open = true;
  }

  /** The settings are folded below a line's takes, as somebody left them; where there are no takes they are open. */
  #showMore(speech) {
    const hasTakes = speech.length === 1 && speech[0].n_takes > 0;
    setHidden(byId("line-more"), speech.length === 0);
    if (hasTakes === this.#hasTakes) return;
    this.#hasTakes = hasTakes;
    byId("line-more").open = !hasTakes || localStore.get(MORE_KEY) === "open";
  }

  /** Show the spoken text of a line. */
  #showSpoken(line) {
    const spoken = line?.spoken ?? null;
    setHidden(byId("pronounce-part"), !line);
    setHidden(byId("as-written-part"), !this.#parts.project.view.settings.says_words);
    byId("as-written").checked = Boolean(line?.params?.[AS_WRITTEN]);
    setHidden(byId("line-spoken"), spoken === null);
    setText(byId("line-spoken-text"), spoken === "" ? t`nothing` : (spoken ?? ""));
  }

  #showRecording(line) {
    setHidden(byId("recording-part"), !line);
    if (!line) return;
    setText(byId("recording-name"), recordingTitle(line));
    setText(byId("recording-length"), line.take ? formatLength(line.take.samples / RATE_HZ) : t`not played yet`);
    setText(byId("recording-choose"), line.take ? t`Replace the file` : t`Choose a file`);
    byId("recording-choose").disabled = Boolean(line.locked);
    this.#showGap("recording-gap", [line]);
  }

  /** The gap before lines; where they have none of their own, how long it is. */
  #showGap(name, lines) {
    const usual = lines.length === 1 && this.#parts.playback.gapBefore(lines[0].line_id);
    field(name).dataset.empty = usual ? t`${usual.toFixed(2)} (default)` : t`default`;
    put(name, shared(lines.map(({ params }) => params ?? {}), GAP));
  }

  #fill(lines) {
    put("speaker", shared(lines, "speaker"));
    this.#offerLanguage(shared(lines, "language"));
    this.#offerMoods(lines);
    this.#showInherited(lines);
    put("seed", shared(lines, "seed"));
    put("instruct", shared(lines.map(({ params }) => params ?? {}), "instruct"));
    const single = lines.length === 1;
    this.#showGap("gap", lines);
    for (const [name, by] of [["before", -1], ["after", 1]]) {
      field(name).disabled = !single;
      field(name).dataset.empty = single ? "" : t`select a single line`;
      put(name, single ? (this.#pauseAt(lines[0].line_id, by)?.duration_s ?? 0) : null);
    }
    const locked = lines.every((line) => line.locked);
    byId("act-lock").setAttribute("aria-pressed", String(locked));
    setText(byId("act-lock").querySelector(".label"), locked ? t`Unlock` : t`Lock`);
    this.#params.show(lines, (line, name) => characterOf(this.#parts.project.view, line.speaker).params[name]);
  }

  /** The mood and the instruction of the character stand where the lines have none of their own. */
  #showInherited(lines) {
    const { view } = this.#parts.project;
    const all = lines.map(({ speaker }) => characterOf(view, speaker).params);
    const [first] = all;
    const common = (name) => (all.every((one) => one[name] === first[name]) ? first[name] : undefined);
    const [mood, instruct] = [common("mood"), common("instruct")];
    const main = field("mood").querySelector("option[value='']:not(:disabled)");
    if (main) setText(main, mood ? t`${mood} (as its character)` : t`main sample`);
    field("instruct").dataset.empty = instruct ? t`${instruct} (as its character)` : t`e.g. angrily, in a low voice`;
  }

  /** A language that the voice doesn't have stays visible, so that it can be changed. */
  #offerLanguage(code) {
    const { options } = field("language");
    if (document.activeElement === field("language")) return;
    [...options].filter((option) => option.dataset.stray).forEach((option) => option.remove());
    // Another code of a language takes the place of the one that is offered.
    if (code && code in (this.#languages ?? {}) && ![...options].some(({ value }) => value === code)) this.#listLanguages(code);
    if (code && ![...options].some((option) => option.value === code)) {
      const option = new Option(t`${code} (not supported by this voice)`, code);
      option.dataset.stray = "true";
      field("language").add(option);
    }
    put("language", code);
    if (code === undefined) this.#differ(field("language"));
  }

  /** @param {string | null} code chosen */
  #listLanguages(code) {
    field("language").replaceChildren(new Option(t`Same as voice`, ""), ...languageOptions(this.#languages, code));
  }

  /** An option for lines with several values, which can't be chosen. */
  #differ(select) {
    const option = new Option(t`Mixed`, "");
    Object.assign(option, { disabled: true, selected: true });
    option.dataset.stray = "true";
    select.add(option);
  }

  /** The moods of the voice, if all selected lines have the same one. */
  #offerMoods(lines) {
    const speaker = shared(lines, "speaker");
    const moods = speaker === undefined ? [] : this.#moods(speaker);
    const chosen = shared(lines.map(({ params }) => params ?? {}), "mood");
    const unknown = chosen && !moods.some((mood) => fold(mood) === fold(chosen)) ? [chosen] : [];
    setHidden(byId("mood-part"), moods.length === 0 && unknown.length === 0);
    this.#listMoods([...moods, ...unknown]);
    const known = moods.find((mood) => fold(mood) === fold(chosen ?? ""));
    setValue(field("mood"), known ?? chosen ?? "");
  }

  #listMoods(moods) {
    if (JSON.stringify(moods) === this.#offered) return;
    this.#offered = JSON.stringify(moods);
    field("mood").replaceChildren(new Option(t`main sample`, ""), ...moods.map((mood) => new Option(mood, mood)));
  }

  #moods(speaker) {
    const chosen = this.#parts.project.view.cast[speaker];
    const fits = ({ speaker_id: id, name }) => (chosen ? id === chosen : fold(name) === fold(speaker));
    return this.#library.find(fits)?.moods ?? [];
  }

  #setParam({ name, value }) {
    const { project, selection } = this.#parts;
    const alike = new Map();
    for (const lineId of selection.ids) {
      const { kind, params } = project.line(lineId);
      const has = kind === "speech" || (kind === "audio" && name === GAP);
      if (!has || (value === null && !(name in (params ?? {})))) continue;
      const { [name]: _, ...others } = params ?? {};
      const next = value === null ? others : { ...others, [name]: value };
      const key = JSON.stringify(next);
      if (!alike.has(key)) alike.set(key, { op: "set", line_ids: [], fields: { params: next } });
      alike.get(key).line_ids.push(lineId);
    }
    // A slider moved by keys changes with each of them.
    const group = value === null ? null : `${name} ${selection.ids}`;
    if (alike.size) project.edit([...alike.values()], { group });
  }

  #pauseAt(lineId, by) {
    const { project } = this.#parts;
    const { order } = project.view;
    const adjacent = project.line(order[order.indexOf(lineId) + by]);
    return adjacent?.kind === "silence" ? adjacent : null;
  }

  /** The pause next to a line is a line of its own: added, changed, or deleted with 0. */
  #pause(input, by) {
    const { project, selection } = this.#parts;
    const seconds = Number(input.value);
    const lineId = selection.current;
    if (!input.validity.valid || !project.line(lineId)) return this.#show();
    const adjacent = this.#pauseAt(lineId, by);
    const { order } = project.view;
    const step = { group: `pause ${by} ${lineId}` };
    const after = by > 0 ? lineId : (order[order.indexOf(lineId) - 1] ?? null);
    if (adjacent && seconds) project.edit([{ op: "set", line_ids: [adjacent.line_id], fields: { duration_s: seconds } }], step);
    else if (adjacent) project.edit([{ op: "delete", line_ids: [adjacent.line_id] }], step);
    else if (seconds) {
      const line = { line_id: newId(), kind: "silence", duration_s: seconds };
      project.edit([{ op: "insert", after, lines: [line] }], step);
    }
    return undefined;
  }
}

/** The common value of lines; undefined if they differ. */
function shared(lines, name) {
  const first = lines[0][name] ?? null;
  return lines.every((line) => (line[name] ?? null) === first) ? first : undefined;
}

/** Set a field's value only if it differs: with each choice that is made in a list, Chromium looks for forms to fill. */
function setValue(input, value) {
  if (input.value !== value) input.value = value;
}

function put(name, value) {
  const input = field(name);
  if (isDirty(input)) return;
  setValue(input, value === undefined || value === null ? "" : String(value));
  input.placeholder = value === undefined ? t`Mixed` : (input.dataset.empty ?? "");
}
