/** Keyboard shortcuts; single keys are off during typing and on a focused control. */
import { byId, isDirty } from "../core/dom.js";
import { openSoundForm } from "../panels/file_drop.js";

/** @import { Parts } from "../core/types" */

const TYPING = 'input, textarea, select, [contenteditable], audio, dialog, [role="menu"]';
const CONTROL = `${TYPING}, button, a, summary, [role="slider"]`;

/** @param {Pick<Parts, "playback" | "spokenWords" | "commands" | "selection" | "typing" | "find" | "pronunciations" | "gotoBar" | "cast" | "patches" | "takes" | "lineRecorder">} parts */
export function listenForShortcuts({ playback, spokenWords, commands, selection, typing, find, pronunciations, gotoBar, cast, patches, takes, lineRecorder }) {
  const keys = byId("keys");
  const at = () => selection.current;
  const go = (by, how) => {
    selection.go(selection.neighbour(by), how);
    selection.focus();
  };
  const table = {
    "Ctrl+Enter": () => playback.read(),
    "Ctrl+Shift+Enter": () => playback.make(),
    "Alt+Enter": () => spokenWords.playFromCaret(),
    "Ctrl+f": () => find.open(),
    "Ctrl+s": () => commands.save(),
    F8: () => pronunciations.open(),
    F9: () => patches.press(),
  };
  const history = { "Ctrl+z": () => commands.travel("undo"), "Ctrl+y": () => commands.travel("redo"), "Ctrl+Shift+z": () => commands.travel("redo") };
  const single = {
    " ": () => (at() ? playback.playLine(at()) : playback.toggle()),
    "Shift+ ": () => (at() ? playback.playOn(at()) : playback.toggle()),
    ArrowUp: () => go(-1), ArrowDown: () => go(1),
    "Shift+ArrowUp": () => go(-1, "range"), "Shift+ArrowDown": () => go(1, "range"),
    PageUp: () => go(-10), PageDown: () => go(10),
    Home: () => go(-Infinity), End: () => go(Infinity),
    ArrowLeft: () => playback.step(-1), ArrowRight: () => playback.step(1),
    Enter: () => at() && typing.edit(at()),
    "Shift+Enter": () => commands.add(),
    Delete: () => commands.delete(), Backspace: () => commands.delete(), "Shift+Delete": () => commands.delete(),
    "Ctrl+d": () => commands.duplicate(), "Ctrl+a": () => selection.all(),
    r: () => playback.again(selection.ids), l: () => commands.lock(), p: () => commands.addPause(),
    h: () => commands.addHeading(), m: () => lineRecorder.open(at()),
    "Alt+ArrowUp": () => commands.shift(-1), "Alt+ArrowDown": () => commands.shift(1),
    g: () => gotoBar.open(), n: () => gotoBar.step(1), "Shift+n": () => gotoBar.step(-1), s: () => gotoBar.markSame(),
    a: () => takes.compare(), u: () => takes.usePlayed(), k: () => takes.keepBest(),
    Escape: () => selection.go(null),
  };
  for (let digit = 0; digit <= 9; digit += 1) single[String(digit)] = () => gotoBar.decide(digit) || typing.typeSeconds(digit);
  const calm = { "Ctrl+e": () => openSoundForm(), "?": () => keys.showModal(), "Shift+?": () => keys.showModal() };
  // Chromium and Firefox leave Ctrl and a digit to the page; Safari and some systems only Alt.
  for (let place = 1; place <= 9; place += 1) {
    calm[`Ctrl+${place}`] = calm[`Alt+${place}`] = () => commands.giveTo(cast.name(place));
  }
  byId("keys-open").addEventListener("click", () => keys.showModal());
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    const act = chosen(event, { table, history, single, calm });
    if (!act || document.querySelector("dialog[open]")) return; // looked for last: it walks the whole page
    event.preventDefault();
    act();
  });
}

function chosen(event, { table, history, single, calm }) {
  const name = combination(event);
  const { target } = event;
  if (name in table) return table[name];
  // In a row's text, too, as the studio's history has the typed text.
  if (name in history) return target.matches("textarea") || isDirty(target) ? null : history[name];
  if (name in calm) return target.closest(TYPING) ? null : calm[name];
  return name in single && !target.closest(CONTROL) ? single[name] : null;
}

/** Digits are read by their key's position, as with Alt, or on a French keyboard, the keys give other characters. */
function combination({ key, code, ctrlKey, metaKey, altKey, shiftKey }) {
  const held = [(ctrlKey || metaKey) && "Ctrl", altKey && "Alt", shiftKey && "Shift"].filter(Boolean);
  const [, digit] = ((ctrlKey || metaKey || altKey) && /^Digit([1-9])$/.exec(code)) || [];
  return [...held, digit ?? (key.length === 1 ? key.toLowerCase() : key)].join("+");
}
