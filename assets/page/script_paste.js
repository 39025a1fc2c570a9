/**
 * What is pasted while the script is shown goes into it. A chat, as the studio reads it, becomes the script
 * of it; undo brings back what was pasted.
 */
import { scriptOf } from "./copied.js";
import { isLaidOut } from "./dom.js";
import { count, fold } from "./format.js";
import { done } from "./notices.js";
import * as api from "./project_api.js";

const TYPED = "input, textarea, select, [contenteditable]";
const MOST_CHARS = 1_000_000;

/** @param {HTMLTextAreaElement} area */
export function takePasted(area) {
  document.addEventListener("paste", (event) => {
    const text = event.clipboardData?.getData("text/plain").replace(/\r\n?/g, "\n");
    if (!text || !isMeant(event, area)) return;
    event.preventDefault();
    area.focus();
    const from = area.selectionStart;
    write(text);
    if (text.trim().includes("\n") && text.length <= MOST_CHARS) readAsChat(area, from, text);
  });
}

function isMeant({ defaultPrevented, target }, area) {
  if (defaultPrevented || area.readOnly || !isLaidOut(area)) return false;
  return target === area || !(target.closest(TYPED) || document.querySelector("dialog[open]"));
}

async function readAsChat(area, from, text) {
  const pasted = area.value;
  const { chat, lines } = await api.readLines(new Blob([text])).catch(() => ({ chat: false })); // a script tells itself
  if (!chat || area.value !== pasted || area.readOnly) return; // somebody writes on
  rewrite(area, [from, from + text.length], scriptOf(lines));
  offerBack(area, lines);
}

/** A step of its own in the browser's history, so that one back leads to the text as it was pasted. */
function rewrite(area, [from, to], script) {
  area.focus();
  area.setSelectionRange(from, to);
  const begins = from === 0 || area.value[from - 1] === "\n";
  write(begins ? script : `\n${script}`);
}

/** `execCommand` alone writes so that the browser's undo knows of it. */
function write(text) {
  document.execCommand("insertText", false, text);
}

function offerBack(area, lines) {
  const after = area.value;
  const press = () => {
    area.focus();
    if (area.value === after) document.execCommand("undo");
  };
  const speakers = new Set(lines.map(({ speaker }) => fold(speaker))).size;
  done(`Read as a chat: ${count(lines.length, "line")} of ${count(speakers, "speaker")}.`, { label: "As pasted", press });
}
