/** What a review link opens: the lines that are ready to be heard, and comments on them. */
import { formatDateTime } from "../core/format.js";
import { t, translateTree } from "../core/texts.js";
import { ask, byId, followTheme, Following, fromTemplate, safeColour, say } from "./reading.js";

const NAME_KEY = "tableread.name";

class ReviewPage {
  #base = location.pathname.replace(/\/$/, "");
  #audio = new Audio();
  #rows = new Map();
  #lines = [];
  #colours = {};
  #playing = null;
  #at = -1;
  #goesOn = false;
  #wait = 0;
  #mixer = null;
  #following;

  constructor() {
    const addresses = { project: `${this.#base}/project`, events: `${this.#base}/events` };
    this.#following = new Following(addresses, (body) => this.#show(body), undefined, (error) => this.#ended(error));
    this.#audio.addEventListener("ended", () => this.#next());
    this.#audio.addEventListener("error", () => this.#playing && this.#missed());
    byId("play").addEventListener("click", () => (this.#playing ? this.#stop() : this.#playAll()));
  }

  #ended(error) {
    this.#stop();
    byId("lines").replaceChildren();
    byId("play").hidden = true;
    return error.message;
  }

  #show({ name, lines, colours, comments }) {
    document.title = t`${name} · Review`;
    byId("name").textContent = name;
    this.#lines = lines.filter(({ kind }) => kind !== "silence");
    this.#colours = colours;
    byId("play").hidden = !this.#lines.some((line) => line.take_id);
    const list = byId("lines");
    const shown = this.#lines.map((line) => this.#row(line, comments.filter((one) => one.line_id === line.line_id)));
    const kept = new Set(shown);
    // Of a line that is deleted while somebody writes about it, the words stay; sending them says why they can't be.
    const [left, gone] = [[], []];
    for (const row of list.children) if (!kept.has(row)) (row.querySelector("form") ? left : gone).push(row);
    for (const row of gone) row.remove();
    let place = list.firstElementChild;
    for (const row of shown) {
      while (left.includes(place)) place = place.nextElementSibling;
      if (row === place) place = place.nextElementSibling;
      else list.insertBefore(row, place);
    }
    this.#rows = new Map(this.#lines.map((line, at) => [line.line_id, shown[at]]));
  }

  #row(line, comments) {
    const known = this.#rows.get(line.line_id);
    const row = known ?? fromTemplate("line");
    const find = (name) => row.querySelector(`.row-${name}`);
    row.dataset.kind = line.kind;
    row.dataset.line = line.line_id;
    find("speaker").textContent = line.speaker ?? (line.kind === "audio" ? t`Recording` : "");
    find("speaker").style.setProperty("--colour", safeColour(this.#colours[line.speaker]));
    find("text").textContent = line.text;
    find("play").disabled = !line.take_id;
    find("play").title = line.take_id ? "" : t`This line isn’t ready yet`;
    find("play").ariaLabel = line.take_id ? t`Play: ${line.text.slice(0, 80)}` : t`Not ready yet`;
    find("comment").ariaLabel = t`Comment on: ${line.text.slice(0, 80)}`;
    find("comments").replaceChildren(...comments.map(commentItem));
    if (known) return row;
    find("play").addEventListener("click", () => this.#press(line.line_id));
    find("comment").addEventListener("click", () => this.#write(row, line.line_id));
    return row;
  }

  #press(lineId) {
    const isThis = this.#playing === lineId;
    this.#stop();
    if (!isThis) this.#play(lineId, false);
  }

  #playAll() {
    const first = this.#lines.find((line) => line.take_id);
    if (first) this.#play(first.line_id, true);
  }

  async #play(lineId, goesOn) {
    const line = this.#lines.find((one) => one.line_id === lineId);
    if (!line?.take_id) return this.#next(); // deleted, or changed, in the pause before it
    this.#mark(lineId);
    this.#goesOn = goesOn;
    this.#audio.src = `${this.#base}/takes/${line.line_id}/${line.take_id}.wav`;
    this.#mix(line);
    try {
      await this.#audio.play();
    } catch (error) {
      if (error.name === "NotAllowedError") this.#refuse(); // of the others the audio element tells
    }
  }

  /** A sound that doesn't come may be of a line that was deleted, or said anew, before the page read of it. */
  async #missed() {
    const [lineId, takeId] = [this.#playing, this.#takeOf(this.#playing)];
    await this.#following.again();
    if (this.#playing !== lineId) return;
    if (takeId && this.#takeOf(lineId) === takeId) this.#refuse();
    else this.#play(lineId, this.#goesOn);
  }

  #takeOf(lineId) {
    return this.#lines.find((line) => line.line_id === lineId)?.take_id;
  }

  #refuse() {
    this.#stop();
    say(t`This line can’t be played now. Reload the page.`);
  }

  #next() {
    const at = this.#lines.findIndex((line) => line.line_id === this.#playing);
    const from = at < 0 ? this.#at : at + 1; // where a deleted line was, there is the one after it
    const next = this.#goesOn ? this.#lines.slice(from).find((line) => line.take_id) : null;
    if (!next) return this.#stop();
    this.#mark(next.line_id);
    this.#wait = setTimeout(() => this.#play(next.line_id, true), 1000 * next.before_s);
    return undefined;
  }

  /** Level and place of a character, as in the scene. */
  #mix({ level_db: level, pan }) {
    if (!this.#mixer && this.#lines.every((one) => one.level_db === 0 && one.pan === 0)) return;
    this.#mixer ??= mixerOf(this.#audio);
    this.#mixer.gain.gain.value = 10 ** (level / 20);
    this.#mixer.panner.pan.value = pan;
  }

  #stop() {
    clearTimeout(this.#wait);
    this.#mark(null);
    this.#audio.pause();
  }

  #mark(lineId) {
    const show = (row, on) => {
      row?.toggleAttribute("aria-current", on);
      row?.querySelector(".row-play").setAttribute("aria-pressed", String(on));
    };
    show(this.#rows.get(this.#playing), false);
    this.#playing = lineId;
    this.#at = this.#lines.findIndex((line) => line.line_id === lineId);
    show(this.#rows.get(lineId), true);
    this.#rows.get(lineId)?.scrollIntoView({ block: "nearest" });
    byId("play").setAttribute("aria-pressed", String(lineId !== null));
    byId("play").textContent = lineId === null ? t`Play all` : t`Stop`;
  }

  #write(row, lineId) {
    const open = row.querySelector("form");
    if (open) return open.elements.text.focus();
    const form = fromTemplate("form");
    form.elements.author.value = keptName();
    form.querySelector(".your-name").hidden = keptName() !== "";
    form.querySelector(".form-cancel").addEventListener("click", () => {
      form.remove();
      row.querySelector(".row-comment").focus();
    });
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.#send(form, lineId);
    });
    row.querySelector(".row-body").append(form);
    return form.elements.text.focus();
  }

  async #send(form, lineId) {
    const { author, text } = form.elements;
    const fault = form.querySelector(".form-fault");
    const send = form.querySelector(".primary");
    fault.hidden = true;
    send.disabled = true;
    try {
      const body = await ask(`${this.#base}/comments`, { line_id: lineId, author: author.value, text: text.value });
      keepName(author.value);
      form.remove();
      this.#show(body);
      this.#rows.get(lineId)?.querySelector(".row-comment").focus();
    } catch (error) {
      fault.textContent = error.message;
      fault.hidden = false;
      form.querySelector(".your-name").hidden = false;
      send.disabled = false;
    }
  }
}

/** @param {HTMLAudioElement} audio */
function mixerOf(audio) {
  const context = new AudioContext();
  const [gain, panner] = [context.createGain(), context.createStereoPanner()];
  context.createMediaElementSource(audio).connect(gain).connect(panner).connect(context.destination);
  return { gain, panner };
}

function commentItem({ author, at_s: at, text, resolved }) {
  const item = fromTemplate("comment");
  item.querySelector(".comment-author").textContent = author;
  item.querySelector("time").textContent = formatDateTime(at);
  item.querySelector(".comment-state").textContent = resolved ? t`resolved` : "";
  item.querySelector(".comment-text").textContent = text;
  return item;
}

let name = "";

function keptName() {
  try {
    return localStorage.getItem(NAME_KEY) ?? name;
  } catch {
    return name;
  }
}

function keepName(given) {
  name = given.trim();
  try {
    localStorage.setItem(NAME_KEY, name);
  } catch { /* this page remembers it as long as it is open */ }
}

translateTree(document);
followTheme();
new ReviewPage();
