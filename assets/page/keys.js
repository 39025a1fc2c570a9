/** The keyboard; single keys are off while a person types or stands on a control. */
import { byId } from "./dom.js";
import { offerSound } from "./transfer.js";
import { holdsTyping } from "./typed.js";

const TYPING = 'input, textarea, select, [contenteditable], audio, dialog, [role="menu"]';
const CONTROL = `${TYPING}, button, a, summary, [role="slider"]`;

/** @param {object} parts reading, acts, selection, typing, find, pronouncing, marks, cast */
export function listen({ reading, acts, selection, typing, find, pronouncing, marks, cast }) {
  const keys = /** @type {HTMLDialogElement} */ (byId("keys"));
  const at = () => selection.current;
  const go = (by, how) => {
    selection.go(selection.neighbour(by), how);
    selection.focus();
  };
  const table = {
    "Ctrl+Enter": () => reading.read(),
    "Ctrl+Shift+Enter": () => reading.make(),
    "Ctrl+f": () => find.open(),
    "Ctrl+s": () => acts.save(),
    F8: () => pronouncing.open(),
  };
  const history = { "Ctrl+z": () => acts.travel("undo"), "Ctrl+y": () => acts.travel("redo"), "Ctrl+Shift+z": () => acts.travel("redo") };
  const single = {
    " ": () => (at() ? reading.playLine(at()) : reading.toggle()),
    "Shift+ ": () => (at() ? reading.playOn(at()) : reading.toggle()),
    ArrowUp: () => go(-1), ArrowDown: () => go(1),
    "Shift+ArrowUp": () => go(-1, "range"), "Shift+ArrowDown": () => go(1, "range"),
    PageUp: () => go(-10), PageDown: () => go(10),
    Home: () => go(-Infinity), End: () => go(Infinity),
    ArrowLeft: () => reading.step(-1), ArrowRight: () => reading.step(1),
    Enter: () => at() && typing.edit(at()),
    "Shift+Enter": () => acts.add(),
    Delete: () => acts.delete(), Backspace: () => acts.delete(), "Shift+Delete": () => acts.delete(),
    "Ctrl+d": () => acts.duplicate(), "Ctrl+a": () => selection.all(),
    r: () => reading.again(selection.ids), l: () => acts.lock(), p: () => acts.addPause(),
    "Alt+ArrowUp": () => acts.shift(-1), "Alt+ArrowDown": () => acts.shift(1),
    g: () => marks.open(), n: () => marks.step(1), "Shift+n": () => marks.step(-1), s: () => marks.markSame(),
    Escape: () => selection.go(null),
  };
  const calm = { "Ctrl+e": () => offerSound(), "?": () => keys.showModal(), "Shift+?": () => keys.showModal() };
  // Chromium and Firefox leave Ctrl and a digit to the page; Safari and some desktops only Alt.
  for (let place = 1; place <= 9; place += 1) {
    calm[`Ctrl+${place}`] = calm[`Alt+${place}`] = () => acts.giveTo(cast.name(place));
  }
  byId("keys-open").addEventListener("click", () => keys.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || document.querySelector("dialog[open]")) return;
    const act = chosen(event, { table, history, single, calm });
    if (!act) return;
    event.preventDefault();
    act();
  });
}

function chosen(event, { table, history, single, calm }) {
  const name = combination(event);
  const { target } = event;
  if (name in table) return table[name];
  // Within a row's text too: the studio's history holds it, letter groups and all.
  if (name in history) return target.matches("textarea") || holdsTyping(target) ? null : history[name];
  if (name in calm) return target.closest(TYPING) ? null : calm[name];
  return name in single && !target.closest(CONTROL) ? single[name] : null;
}

/** A digit is its place on the keyboard: with Alt, or on a French one, it writes something else. */
function combination({ key, code, ctrlKey, metaKey, altKey, shiftKey }) {
  const held = [(ctrlKey || metaKey) && "Ctrl", altKey && "Alt", shiftKey && "Shift"].filter(Boolean);
  const [, digit] = ((ctrlKey || metaKey || altKey) && /^Digit([1-9])$/.exec(code)) || [];
  return [...held, digit ?? (key.length === 1 ? key.toLowerCase() : key)].join("+");
}
