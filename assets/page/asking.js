/** A question put in a `<dialog>`, and the answer to that very question. */

/** Who still waits for the answer of a dialog. @type {WeakMap<HTMLDialogElement, (answer: string) => void>} */
const waiting = new WeakMap();

/**
 * Show a dialog and wait until it is closed. Its `close` event comes a task after it closed: by then it may have been
 * opened again, and what was asked before gets the answer it was given.
 * @param {HTMLDialogElement} dialog
 * @param {string} none the answer when it is closed without one
 * @returns {Promise<string>} the value of the button pressed
 */
export function answerTo(dialog, none) {
  waiting.get(dialog)?.(dialog.returnValue);
  dialog.returnValue = none;
  dialog.onclose = () => {
    if (dialog.open) return;
    waiting.get(dialog)?.(dialog.returnValue);
    waiting.delete(dialog);
  };
  if (!dialog.open) dialog.showModal();
  return new Promise((answer) => waiting.set(dialog, answer));
}
