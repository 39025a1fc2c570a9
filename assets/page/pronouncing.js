/** Where a person meets pronunciations: the marked word, the line's panel, the cast. */
import { byId, markedText, setHidden, setText } from "./dom.js";
import { Pronunciations } from "./pronunciations.js";

const LONGEST = 200;

export class Pronouncing {
  #project;
  #selection;
  #list;
  #marked = { lineId: null, word: "" };

  /** @param {object} parts project, selection, acts */
  constructor({ project, selection, acts }) {
    this.#project = project;
    this.#selection = selection;
    this.#list = new Pronunciations({ project, acts });
    document.addEventListener("selectionchange", () => this.#notice());
    byId("pronunciations-open").addEventListener("click", () => this.#list.open());
    byId("line-pronounce").addEventListener("click", () => this.open());
    project.addEventListener("change", () => this.#show());
    selection.addEventListener("change", () => this.#show());
    this.#show();
  }

  /** Open the list, with the word that is marked in the script filled in. */
  open() {
    this.#list.open(this.#word());
  }

  #word() {
    if (document.activeElement?.matches("#script")) return clean(markedText());
    this.#notice();
    return this.#marked.lineId === this.#selection.current ? this.#marked.word : "";
  }

  /** What is marked in a row is remembered: a press on a button takes the mark away. */
  #notice() {
    const { anchorNode, focusNode, isCollapsed } = getSelection();
    const at = anchorNode instanceof Element ? anchorNode : anchorNode?.parentElement;
    const text = at?.closest(".line-text");
    if (!text?.contains(focusNode)) return;
    const { line: lineId } = text.closest(".line").dataset;
    this.#marked = { lineId, word: isCollapsed ? "" : clean(String(getSelection())) };
  }

  #show() {
    const { ids } = this.#selection;
    const line = ids.length === 1 ? this.#project.line(ids[0]) : null;
    setHidden(byId("pronounce-part"), line?.kind !== "speech");
    const spoken = line?.spoken ?? null;
    setHidden(byId("line-spoken"), spoken === null);
    setText(byId("line-spoken-text"), spoken === "" ? "nothing" : (spoken ?? ""));
    const all = this.#project.view.pronunciations.length;
    setText(byId("pronunciations-open-count"), all ? String(all) : "");
  }
}

function clean(text) {
  const word = text.trim().replace(/\s+/g, " ");
  return word.length <= LONGEST ? word : "";
}
