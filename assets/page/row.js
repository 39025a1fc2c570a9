/** One row of the dialog: made once, then written only where it differs. */
import { fromTemplate, safeColour, setData, setHidden, setText } from "./dom.js";
import { count, length } from "./format.js";
import { RATE_HZ } from "./dialog.js";

const STATE_WORDS = {
  none: "",
  queued: "waiting",
  generating: "reading",
  ready: "ready",
  stale: "changed",
  failed: "failed",
};

/** A row for a line; its kind never changes. */
export class Row {
  #number = "";
  #hints = [];
  #hinted = "";
  #mark = null;

  /** @param {object} line */
  constructor(line) {
    this.kind = line.kind;
    this.root = fromTemplate(line.kind === "silence" ? "pause-template" : "line-template");
    this.root.dataset.line = line.line_id;
    this.root.dataset.kind = line.kind;
    const find = (name) => this.root.querySelector(`.line-${name}`);
    this.number = find("number");
    this.play = find("play");
    this.text = find("text");
    this.speaker = find("speaker");
    this.state = find("state");
    this.length = find("length");
    this.takes = find("takes");
    this.reason = find("reason");
    this.seconds = find("seconds");
    if (line.kind === "audio") this.#beRecording();
  }

  #beRecording() {
    this.text.removeAttribute("contenteditable");
    this.speaker.disabled = true;
    this.file = fromTemplate("file-template");
    this.speaker.after(this.file);
  }

  /** @param {string[]} messages what the voice would make of it that may not be meant */
  hint(messages) {
    if (this.kind === "silence") return;
    this.#hints = messages;
    this.#showWhy(this.line);
  }

  /** Why it failed, and what is to be known about it; nothing is said twice. */
  #showWhy({ state, message }) {
    const failed = state === "failed" && !(this.kind === "audio" && this.#hints.length);
    this.#showHints(this.#hints.filter((hint) => !failed || hint !== message).join(" "));
    setText(this.reason, failed ? (message ?? "") : "");
    setHidden(this.reason, !failed);
  }

  #showHints(text) {
    if (this.#hinted === text) return;
    this.#hinted = text;
    if (!this.#mark) this.speaker.parentElement.append((this.#mark = fromTemplate("hint-template")));
    setText(this.#mark.querySelector(".hint-text"), text);
    this.#mark.title = text;
    setHidden(this.#mark, text === "");
  }

  /** @param {object} line @param {string} colour of its speaker */
  write(line, colour) {
    this.line = line;
    if (this.kind === "silence") return this.#writePause(line);
    if (this.colour !== colour) {
      this.root.style.setProperty("--colour", (this.colour = safeColour(colour)));
    }
    setText(this.speaker, line.kind === "audio" ? "Recording" : line.speaker || "No speaker");
    this.#writeText(line.kind === "audio" ? fileTitle(line) : line.text);
    if (line.kind === "audio") this.#writeFile(line);
    this.#writeState(line);
  }

  #writeFile({ take, locked }) {
    setText(this.file, take ? "Replace" : "Choose a file");
    this.file.disabled = Boolean(locked);
  }

  /** While it is typed into, spaces at its ends are the person's, and so is the caret. */
  #writeText(text) {
    const shown = this.text.textContent;
    if (document.activeElement !== this.text) return setText(this.text, text);
    if (shown === text || plain(shown) === plain(text)) return undefined;
    const at = getSelection().focusOffset;
    this.text.textContent = text;
    const node = this.text.firstChild;
    if (node) getSelection().collapse(node, Math.min(at, node.length));
    return undefined;
  }

  /** The person has left the text: show it as it is kept. */
  settle() {
    if (this.kind === "speech") setText(this.text, this.line.text);
  }

  /** @param {number} number of the line among what is spoken, or of the pause before it */
  renumber(number) {
    const text = String(number);
    if (this.#number === text) return;
    this.#number = text;
    if (this.kind === "silence") return this.seconds.setAttribute("aria-label", `Pause after line ${text}, seconds`);
    setText(this.number, text);
    this.file?.setAttribute("aria-label", `File of line ${text}`);
    this.text.setAttribute("aria-label", `Text of line ${text}`);
    this.play.setAttribute("aria-label", `Play line ${text}`);
  }

  #writePause({ duration_s: seconds }) {
    setData(this.root, "state", "ready");
    if (document.activeElement !== this.seconds) this.seconds.value = String(seconds);
  }

  #writeState(line) {
    const { state, samples, take, n_takes: takes, locked } = line;
    setData(this.root, "state", state);
    setData(this.root, "locked", String(Boolean(locked)));
    setText(this.state, STATE_WORDS[state] ?? state);
    const heard = take || state === "ready" || state === "stale";
    setText(this.length, heard && samples ? length(samples / RATE_HZ) : "");
    setText(this.takes, takes > 1 ? count(takes, "take") : "");
    setHidden(this.takes, !(takes > 1));
    this.#showWhy(line);
  }
}

/** A recording's name as it was brought in, without the mark that tells it from others of that name. */
export function fileTitle({ path, take }) {
  return take ? path.replace(/-[0-9a-f]{8}(\.[^.]+)$/, "$1") : path;
}

function plain(text) {
  return text.replace(/\s+/g, " ").trim();
}
