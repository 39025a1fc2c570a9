/** The studio's HTTP interface to projects; every address is relative to the page's base. */
import { json, part, request } from "./api.js";

const at = (id, rest = "") => `projects/${part(id)}${rest}`;
const post = (path, body) => json(path, { method: "POST", body });

export const list = () => json("projects");
/** @param {{name?: string, text?: string, like?: string}} body */
export const create = (body) => post("projects", body);
export const read = (id) => json(at(id));
export const rename = (id, name) => request(at(id), { method: "PATCH", body: { name } });
export const remove = (id) => request(at(id), { method: "DELETE" });

/** @param {File} file a project, or a script in any format @returns {Promise<object>} its body */
export const importFile = (file) =>
  json(`projects/import?name=${part(file.name)}`, { method: "POST", body: file });

/**
 * New lines as a file or, without a name, the clipboard holds them; nothing is changed by it.
 * @param {Blob} body @returns {Promise<{lines: object[], notices: object[]}>}
 */
export const readLines = (body, name = "") =>
  json(`projects/lines?name=${part(name)}`, { method: "POST", body });
/** @param {object} place {line_id, heard, by} @param {boolean} last the page goes away @returns {Promise<{number: number}>} */
export const leavePlace = (id, place, last = false) =>
  json(at(id, "/place"), { method: "PUT", body: place, keepalive: last });

export const script = (id) => json(at(id, "/script"));
/** @param {object} body {edit_id, base_rev, client, text} @param {boolean} last the page goes away */
export const putScript = (id, body, last = false) =>
  json(at(id, "/script"), { method: "PUT", body, keepalive: last });
/** @param {object} body {edit_id, base_rev, client, group, ops} @param {boolean} last the page goes away */
export const edit = (id, body, last = false) =>
  json(at(id, "/edits"), { method: "POST", body, keepalive: last });
/** What sends batches of one project, whichever is open by then. @returns {(batch: object, last: boolean) => Promise<object>} */
export function sender(id) {
  return ({ edit_id, client, base_rev, group, ops, text }, last) => {
    const about = { edit_id, client, base_rev };
    if (text !== undefined) return putScript(id, { ...about, text }, last);
    return edit(id, { ...about, group, ops }, last);
  };
}

export const undo = (id, body) => post(at(id, "/undo"), body);
export const redo = (id, body) => post(at(id, "/redo"), body);
/** @param {object} body {line_ids, again, listen_from} */
export const render = (id, body) => post(at(id, "/render"), body);
export const cancel = (id) => json(at(id, "/cancel"), { method: "POST" });
export const focus = (id, lineId) =>
  request(at(id, "/focus"), { method: "POST", body: { line_id: lineId } });

/** Deleted projects, as `list` has the others; `edited_at` is when they were deleted. */
export const removed = () => json("space/trash");
/** @returns {Promise<object>} the body of a deleted project, which is there again */
export const restore = (id) => json(`space/trash/${part(id)}/restore`, { method: "POST" });

/** What deleted takes and projects hold: {bytes, takes: {files, bytes}, recordings: {files, bytes}, trash: {projects, bytes}, projects}. */
export const space = () => json("space");
/** Free all of it; the same of what was freed, and `left` [{project_id, message}]. */
export const freeSpace = () => post("space/free", {});

/** What is to be known about lines before they are spoken. @param {string[] | null} lineIds null for all */
export const hints = (id, lineIds) => post(at(id, "/hints"), { line_ids: lineIds });

/** @param {File} file a recording that audio lines play @returns {Promise<{path: string}>} */
export async function addAudio(id, file) {
  const form = new FormData();
  form.append("file", file);
  return json(at(id, "/audio"), { method: "POST", form });
}

/** A file of the project with what its format left out, in words. @returns {Promise<{blob: Blob, leftOut: string}>} */
export async function exported(id, format) {
  const response = await request(at(id, `/export?format=${part(format)}`));
  const leftOut = decodeURIComponent(response.headers.get("X-Left-Out") ?? "");
  return { blob: await response.blob(), leftOut };
}

export const takes = (id, lineId) => json(at(id, `/takes/${part(lineId)}`));
export const peaks = (id, bins, takeIds) =>
  json(at(id, `/peaks?bins=${bins}&takes=${takeIds.map(part).join(",")}`));

/** Raw 16-bit samples of a line, streamed as they are made. */
export const lineAudio = (id, lineId, signal) =>
  request(at(id, `/lines/${part(lineId)}/audio`), { signal });

export const takeUrl = (id, lineId, takeId) =>
  `studio/${at(id, `/takes/${part(lineId)}/${part(takeId)}/audio.wav`)}`;
export const exportUrl = (id, format) => `studio/${at(id, `/export?format=${part(format)}`)}`;
/** Have a file of sound made: {export_id, state, share, message, measured}. @param {object} body {format, loudness, even_voices} */
export const beginSound = (id, body) => post(at(id, "/exports"), body);
export const sound = (id, exportId) => json(at(id, `/exports/${part(exportId)}`));
export const stopSound = (id, exportId) =>
  request(at(id, `/exports/${part(exportId)}`), { method: "DELETE" });
export const soundUrl = (id, exportId) => `studio/${at(id, `/exports/${part(exportId)}/file`)}`;
export const eventsUrl = (id, since) => `studio/${at(id, `/events?since=${since}`)}`;
