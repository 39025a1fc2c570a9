/** The name that a project without one takes from what is brought into it. */
import { t } from "../core/texts.js";

/** @import { NewLine, Op } from "../core/types" */

const UNNAMED = new Set(["", "Untitled", t`Untitled`]);
const MOST_CHARS = 100;

/**
 * The edit that names a project; it belongs into the step that brings the lines. A name that somebody gave stays.
 * @param {string} name the project's now
 * @param {{title?: string | null, lines?: NewLine[], file?: string}} brought its title, its lines, the name of its file
 * @returns {Op[]} one or none
 */
export function namingOps(name, { title = null, lines = [], file = "" }) {
  if (!UNNAMED.has(name.trim())) return [];
  const heading = lines.find(({ unspoken, text }) => unspoken === "heading" && text?.trim())?.text;
  const found = (title || heading || stemOf(file)).replace(/\s+/g, " ").trim().slice(0, MOST_CHARS).trim();
  return found && !UNNAMED.has(found) ? [/** @type {Op} */ ({ op: "rename", name: found })] : [];
}

/** A file's name without its suffix. */
function stemOf(file) {
  return file.replace(/(?<=.)\.[^.]*$/, "").replace(/[_]+/g, " ");
}
