/** The tour: five steps beside what they are about. It comes once, with the first lines, and can be taken again. */
import { bus } from "../core/bus.js";
import { byId, focusedElement, setHidden, setText } from "../core/dom.js";
import { localStore } from "../core/local_store.js";
import { t } from "../core/texts.js";

const SEEN_KEY = "tableread.tour";
const GAP_PX = 12;
const EDGE_PX = 8;

/** Its view, on a phone and beside the lines, and what it points at. */
const STEPS = [
  {
    view: "lines",
    target: "lines-view",
    title: t`Write your lines`,
    text: t`Press Enter in a line to edit its words; press its name to change the speaker. Script shows the same text as a whole.`,
  },
  {
    view: "cast",
    target: "cast-view",
    title: t`Choose the voices`,
    text: t`Every character already has a voice. Choose another or record your own; voices are shared by all projects.`,
  },
  {
    view: "lines",
    target: "play",
    title: t`Play the scene`,
    text: t`This plays from the beginning and generates missing lines on the way. When you change a line, only that line is generated again.`,
  },
  {
    view: "line",
    target: "line-panel",
    title: t`Direct a line`,
    text: t`Select a line to set its mood, pace and language. Make as many takes as you like, compare them and keep the best.`,
  },
  {
    view: "lines",
    target: "download",
    title: t`Export`,
    text: t`Save the scene as audio, at the loudness of a podcast or an audiobook, with captions, or as tracks for your editor.`,
  },
];

export class Tour {
  #card = byId("tour");
  #show;
  #at = 0;
  #before = null;

  /** @param {(view: string) => void} show shows a view */
  constructor(show) {
    this.#show = show;
    byId("tour-leave").addEventListener("click", () => this.leave());
    byId("tour-back").addEventListener("click", () => this.#go(this.#at - 1));
    byId("tour-next").addEventListener("click", () => (this.#at < STEPS.length - 1 ? this.#go(this.#at + 1) : this.leave()));
    // In the capturing phase: Escape means the tour, and not what lies below it too.
    addEventListener("keydown", (event) => this.#keyed(event), true);
    addEventListener("resize", () => this.#card.hidden || this.#place());
    for (const button of document.querySelectorAll("[data-tour]")) {
      button.addEventListener("click", () => setTimeout(() => this.begin())); // once the help is closed
    }
    bus.on("start.used", () => localStore.get(SEEN_KEY) || this.begin());
    bus.on("project.closing", () => this.leave());
  }

  begin() {
    localStore.set(SEEN_KEY, "seen");
    this.#before = focusedElement();
    setHidden(this.#card, false);
    this.#go(0);
  }

  leave() {
    if (this.#card.hidden) return;
    setHidden(this.#card, true);
    this.#point(null);
    this.#show("lines");
    this.#before?.focus?.();
  }

  #keyed(event) {
    if (event.key !== "Escape" || this.#card.hidden || document.querySelector("dialog[open]")) return;
    event.preventDefault();
    event.stopPropagation();
    this.leave();
  }

  #go(at) {
    this.#at = at;
    const { view, target, title, text } = STEPS[at];
    this.#show(view);
    this.#point(byId(target));
    setText(byId("tour-step"), t`Step ${at + 1} of ${STEPS.length}`);
    setText(byId("tour-title"), title);
    setText(byId("tour-text"), text);
    byId("tour-back").disabled = at === 0;
    setText(byId("tour-next"), at < STEPS.length - 1 ? t`Next` : t`Done`);
    this.#place();
    byId("tour-title").focus({ preventScroll: true });
  }

  /** Mark what a step is about. */
  #point(target) {
    document.querySelector("[data-toured]")?.removeAttribute("data-toured");
    target?.setAttribute("data-toured", "");
  }

  /** Beside what the step is about, where there is room; else above the player. */
  #place() {
    const { left, right, top, bottom } = byId(STEPS[this.#at].target).getBoundingClientRect();
    const { offsetWidth: width, offsetHeight: height } = this.#card;
    const inside = (at, size, most) => Math.max(EDGE_PX, Math.min(at, most - size - EDGE_PX));
    const fits = ([x, y]) => x >= EDGE_PX && y >= EDGE_PX && x + width <= innerWidth - EDGE_PX && y + height <= innerHeight - EDGE_PX;
    const below = inside(left, width, innerWidth);
    const level = inside(top, height, innerHeight);
    const places = [[right + GAP_PX, level], [left - width - GAP_PX, level], [below, bottom + GAP_PX], [below, top - height - GAP_PX]];
    const player = byId("player").getBoundingClientRect().top;
    const [x, y] = places.find(fits) ?? [inside((innerWidth - width) / 2, width, innerWidth), inside(player - height - GAP_PX, height, innerHeight)];
    Object.assign(this.#card.style, { left: `${x}px`, top: `${y}px` });
  }
}
