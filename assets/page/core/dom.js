/** Small functions on the DOM; text from users is inserted as text, never as HTML. */
import { languageName } from "./format.js";
import { pageLanguage } from "./texts.js";

/** @import { PageElement } from "./types" */

/** @param {string} id @returns {PageElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return /** @type {PageElement} */ (found);
}

/** Clone the first element of a `<template>`. @param {string} id @returns {PageElement} */
export function fromTemplate(id) {
  const template = /** @type {HTMLTemplateElement} */ (/** @type {HTMLElement} */ (byId(id)));
  return /** @type {PageElement} */ (template.content.firstElementChild.cloneNode(true));
}

/** The focused element. @returns {PageElement | null} */
export function focusedElement() {
  return /** @type {PageElement | null} */ (/** @type {unknown} */ (document.activeElement));
}

/** Set text only if it differs, to avoid a needless layout. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set a data attribute only if it differs. */
export function setData(element, name, value) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

/** Show or hide elements, without touching those that are already. */
export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

/** Whether an element is displayed. Safari before 17.4 can't say so without a layout of the page. */
export function isLaidOut(element) {
  return element.checkVisibility?.() ?? element.getClientRects().length > 0;
}

/** The selected text. Firefox and Safari report that of a text area only through the area itself. @returns {string} */
export function markedText() {
  const area = document.activeElement;
  if (!area?.matches("textarea")) return String(getSelection());
  return area.value.slice(area.selectionStart, area.selectionEnd);
}

/**
 * One option for each language. An engine may know one by several codes, such as `en` and `en-US`: the shortest is
 * offered, and `chosen` in its place where that is one of them.
 *
 * @param {Record<string, string>} languages names by code @param {string | null} [chosen] @returns {HTMLOptionElement[]}
 */
export function languageOptions(languages, chosen = null) {
  const codes = new Map();
  for (const [code, name] of Object.entries(languages)) {
    const key = name.trim().toLowerCase();
    const known = codes.get(key);
    if (known === undefined || code === chosen || (known !== chosen && code.length < known.length)) codes.set(key, code);
  }
  const options = [...codes.values()].map((code) => new Option(languageName(code, languages[code]), code));
  return pageLanguage === "en" ? options : options.toSorted((one, other) => one.text.localeCompare(other.text, pageLanguage));
}

/** A colour from the server, or a neutral one when it isn't "#rrggbb". */
export function safeColour(colour) {
  return /^#[0-9a-f]{6}$/i.test(colour ?? "") ? colour : "#888888";
}

const CONTROL = "a[href], button, input, select, summary";

/**
 * Drop further clicks of a double click that land on another control than the first: that one was replaced under the
 * pointer, as *Save* is by *Cancel*, or its row by the next one, and nobody has meant what is there now.
 */
export function keepDoubleClicks() {
  let first = null;
  addEventListener("click", (event) => {
    const control = event.target instanceof Element ? event.target.closest(CONTROL) : null;
    if (event.detail < 2) first = control;
    else if (control && control !== first) {
      event.preventDefault();
      event.stopImmediatePropagation();
    }
  }, true);
}

/** Resolve once every id is in the page; Gradio mounts its parts after this script loads. @returns {Promise<void>} */
export function whenPresent(ids) {
  const ready = () => ids.every((id) => document.getElementById(id));
  return new Promise((resolve) => {
    if (ready()) return resolve();
    const watcher = new MutationObserver(() => {
      if (!ready()) return;
      watcher.disconnect();
      resolve();
    });
    watcher.observe(document.documentElement, { childList: true, subtree: true });
  });
}

/** Put rows in order without moving those in the right place, since a moved field loses its focus. */
export function arrangeRows(list, rows) {
  const kept = new Set(rows);
  [...list.children].filter((row) => !kept.has(row)).forEach((row) => row.remove());
  rows.forEach((row, idx) => {
    if (list.children[idx] !== row) list.insertBefore(row, list.children[idx] ?? null);
  });
}

/** `act` once after the next paint, however often it is asked for until then: what somebody types is shown first. */
export function afterPaint(act) {
  let isDue = false;
  return () => {
    if (isDue) return;
    isDue = true;
    requestAnimationFrame(() => setTimeout(() => {
      isDue = false;
      act();
    }));
  };
}

/** Open and close a panel by its button, by Escape, and by a press anywhere else; Escape gives the focus back. */
export function disclose(button, panel) {
  let opener = null;
  const show = (open) => {
    if (open) opener = focusedElement(); // not the button, where a shortcut presses it
    panel.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", () => show(panel.hidden));
  document.addEventListener("pointerdown", (event) => {
    const within = [panel, button, document.querySelector("dialog[open]")]; // a dialog may be the panel's own question
    if (!within.some((part) => part?.contains(event.target))) show(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || panel.hidden || document.querySelector("dialog[open]")) return; // it closes the dialog
    show(false);
    (opener?.matches("#lines *") && isLaidOut(opener) ? opener : button).focus();
  });
}

const dirty = new WeakSet();
const OF_LETTERS = 'textarea, input:not([type="range"], [type="checkbox"], [type="radio"], [type="file"])';

document.addEventListener("input", ({ target }) => target instanceof Element && target.matches(OF_LETTERS) && dirty.add(target), true);
for (const end of ["change", "focusout"]) {
  document.addEventListener(end, ({ target }) => dirty.delete(target), true);
}

/** @param {Element} field @returns {boolean} */
export function isDirty(field) {
  return dirty.has(field);
}

/** The callers that wait for a dialog's answer. @type {WeakMap<PageElement, (answer: string) => void>} */
const answers = new WeakMap();

/**
 * Show a dialog and wait until it is closed. Its `close` event comes a task later, when it may have been opened again;
 * the earlier caller then still gets its own answer. Esc leaves a dialog without a value, whatever it had before.
 * @param {PageElement} dialog
 * @param {string} none the answer if it is closed without a button
 * @returns {Promise<string>} the value of the button pressed
 */
export function askDialog(dialog, none) {
  answers.get(dialog)?.(dialog.returnValue);
  dialog.onclose = () => {
    if (dialog.open) return;
    answers.get(dialog)?.(dialog.returnValue);
    answers.delete(dialog);
  };
  if (!dialog.open) dialog.showModal();
  dialog.returnValue = "";
  return new Promise((answer) => answers.set(dialog, (pressed) => answer(pressed || none)));
}
