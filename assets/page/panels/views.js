/** The theme, and the views that the page shows. */
import { byId } from "../core/dom.js";
import { localStore } from "../core/local_store.js";

const LANGUAGE_KEY = "tableread.language";
const LOOK_KEY = "tableread.look";
const VIEW_KEY = "tableread.view";
const MAIN = new Set(["lines", "script"]);

/** Gradio follows the system's theme; a choice made here overrides it and is stored. */
export function keepTheme() {
  const kept = localStore.get(LOOK_KEY);
  if (kept) document.body.classList.toggle("dark", kept === "dark");
  byId("theme-toggle").addEventListener("click", () => {
    const dark = document.body.classList.toggle("dark");
    localStore.set(LOOK_KEY, dark ? "dark" : "light");
  });
}

/**
 * The page's language: the browser's, or the one chosen here, from when the page is loaded again. Arrow keys pass through
 * all languages up to the one that is meant, so by keyboard a choice is final with Enter, or when the field is left.
 */
export function keepLanguage() {
  const choice = byId("page-language");
  const kept = localStore.get(LANGUAGE_KEY) ?? "";
  let byArrows = false;
  const finish = () => {
    if (choice.value === kept) return;
    if (choice.value) localStore.set(LANGUAGE_KEY, choice.value);
    else localStore.remove(LANGUAGE_KEY);
    location.reload();
  };
  choice.value = kept;
  choice.addEventListener("pointerdown", () => (byArrows = false));
  choice.addEventListener("keydown", ({ key }) => {
    byArrows = key !== "Enter";
    if (!byArrows) finish();
  });
  choice.addEventListener("change", () => byArrows || finish());
  choice.addEventListener("blur", finish);
}

/**
 * The lines or the script are in the middle, with the line or the cast next to them; a wide page
 * shows both, a phone only the last chosen view.
 *
 * @param {(view: string) => void} shown called with each choice
 * @returns {(view: string) => void} shows a view
 */
export function keepView(shown) {
  const buttons = [...byId("views").querySelectorAll("button")];
  const { dataset } = document.body;
  const show = (view) => {
    dataset.view = view;
    dataset[MAIN.has(view) ? "main" : "side"] = view;
    for (const button of buttons) {
      const own = button.dataset.view;
      button.setAttribute("aria-pressed", String(own === view));
      button.dataset.open = String(own === dataset.main || own === dataset.side);
    }
    if (MAIN.has(view)) localStore.set(VIEW_KEY, view);
    shown(view);
  };
  buttons.forEach((button) => button.addEventListener("click", () => show(button.dataset.view)));
  show("cast");
  const kept = localStore.get(VIEW_KEY);
  show(MAIN.has(kept) ? kept : "lines");
  return show;
}
