/** Small means of touching the document; whatever a person wrote goes in as text only. */

/** @import { PageElement } from "./types" */

/** @param {string} id @returns {PageElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return /** @type {PageElement} */ (found);
}

/** First element of a `<template>`, copied. @param {string} id @returns {PageElement} */
export function fromTemplate(id) {
  const template = /** @type {HTMLTemplateElement} */ (/** @type {HTMLElement} */ (byId(id)));
  return /** @type {PageElement} */ (template.content.firstElementChild.cloneNode(true));
}

/** What has the keyboard. @returns {PageElement | null} */
export function focusedElement() {
  return /** @type {PageElement | null} */ (/** @type {unknown} */ (document.activeElement));
}

/** Write text only where it differs, so that nothing is laid out again for nothing. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Set a data attribute only where it differs. */
export function setData(element, name, value) {
  if (element.dataset[name] !== value) element.dataset[name] = value;
}

/** Show or hide without touching what is so already. */
export function setHidden(element, hidden) {
  if (element.hidden !== hidden) element.hidden = hidden;
}

/** Whether an element is laid out at all. Safari before 17.4 can't say so without laying out the page. */
export function isLaidOut(element) {
  return element.checkVisibility?.() ?? element.getClientRects().length > 0;
}

/** The text that is marked. Of a text area Firefox and Safari tell it by the area alone. @returns {string} */
export function markedText() {
  const area = document.activeElement;
  if (!area?.matches("textarea")) return String(getSelection());
  return area.value.slice(area.selectionStart, area.selectionEnd);
}

/** A colour from the server, or a neutral one when it isn't "#rrggbb". */
export function safeColour(colour) {
  return /^#[0-9a-f]{6}$/i.test(colour ?? "") ? colour : "#888888";
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

/** Put rows in order without moving those that stand right: a moved field loses its focus. */
export function arrangeRows(list, rows) {
  const kept = new Set(rows);
  [...list.children].filter((row) => !kept.has(row)).forEach((row) => row.remove());
  rows.forEach((row, idx) => {
    if (list.children[idx] !== row) list.insertBefore(row, list.children[idx] ?? null);
  });
}

/** Open and close a panel by its button, by Escape, and by a press anywhere else. */
export function disclose(button, panel) {
  const show = (open) => {
    panel.hidden = !open;
    button.setAttribute("aria-expanded", String(open));
  };
  button.addEventListener("click", () => show(panel.hidden));
  document.addEventListener("pointerdown", (event) => {
    if (!panel.contains(event.target) && !button.contains(event.target)) show(false);
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || panel.hidden) return;
    show(false);
    button.focus();
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

/** Who still waits for the answer of a dialog. @type {WeakMap<PageElement, (answer: string) => void>} */
const answers = new WeakMap();

/**
 * Show a dialog and wait until it is closed. Its `close` event comes a task after it closed: by then it may have been
 * opened again, and what was asked before gets the answer it was given.
 * @param {PageElement} dialog
 * @param {string} none the answer when it is closed without one
 * @returns {Promise<string>} the value of the button pressed
 */
export function askDialog(dialog, none) {
  answers.get(dialog)?.(dialog.returnValue);
  dialog.returnValue = none;
  dialog.onclose = () => {
    if (dialog.open) return;
    answers.get(dialog)?.(dialog.returnValue);
    answers.delete(dialog);
  };
  if (!dialog.open) dialog.showModal();
  return new Promise((answer) => answers.set(dialog, answer));
}
