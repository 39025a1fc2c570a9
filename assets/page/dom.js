/** Small means of touching the document; whatever a person wrote goes in as text only. */

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`The page has no #${id}.`);
  return found;
}

/** First element of a `<template>`, copied. @param {string} id @returns {HTMLElement} */
export function fromTemplate(id) {
  const template = /** @type {HTMLTemplateElement} */ (byId(id));
  return /** @type {HTMLElement} */ (template.content.firstElementChild.cloneNode(true));
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

/** Resolve once every id is in the page; Gradio mounts its parts after this script loads. */
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
