/** The keyboard; single keys are off while a person types or stands on a control. */
import { byId } from "./dom.js";

const TYPING = "input, textarea, select, [contenteditable], audio, dialog";
const CONTROL = `${TYPING}, button, a, summary, [role="slider"]`;

/** @param {{read: Function, toggle: Function, step: (by: number) => void}} acts */
export function listen({ read, toggle, step }) {
  const keys = /** @type {HTMLDialogElement} */ (byId("keys"));
  const single = {
    " ": toggle,
    ArrowLeft: () => step(-1),
    ArrowRight: () => step(1),
    "?": () => keys.showModal(),
  };
  byId("keys-open").addEventListener("click", () => keys.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) return take(event, read);
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const off = event.key === "?" ? TYPING : CONTROL;
    if (event.key in single && !event.target.closest(off)) take(event, single[event.key]);
  });
}

function take(event, act) {
  event.preventDefault();
  act();
}
