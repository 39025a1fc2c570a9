/** Light or dark, and which view a narrow page shows. */
import { byId } from "./dom.js";

const LOOK_KEY = "tableread.look";

/** Gradio follows the system; a choice made here outranks it and is kept. */
export function keepLook() {
  const kept = localStorage.getItem(LOOK_KEY);
  if (kept) document.body.classList.toggle("dark", kept === "dark");
  byId("theme-toggle").addEventListener("click", () => {
    const dark = document.body.classList.toggle("dark");
    localStorage.setItem(LOOK_KEY, dark ? "dark" : "light");
  });
}

/** Narrow pages show one of script, lines and cast at a time. */
export function keepView() {
  const buttons = [...byId("views").querySelectorAll("button")];
  const show = (view) => {
    document.body.dataset.view = view;
    buttons.forEach((button) =>
      button.setAttribute("aria-pressed", String(button.dataset.view === view)),
    );
  };
  buttons.forEach((button) => button.addEventListener("click", () => show(button.dataset.view)));
  show("script");
  return show;
}
