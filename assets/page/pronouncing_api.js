/** The studio's HTTP interface to a project's pronunciations. */
import { json, part, request } from "./api.js";

const at = (id, rest) => `projects/${part(id)}/pronunciations/${rest}`;

/** @param {object | null} entry one that is about to be written @returns {Promise<{lines: object, hints: object, asked: string | null, example: [string, string] | null}>} */
export const reach = (id, entry) => json(at(id, "reach"), { method: "POST", body: { entry } });

/** @param {string} speaker of the cast @param {string} text @returns {Promise<Blob>} */
export const hear = async (id, speaker, text, signal) =>
  (await request(at(id, "hear"), { method: "POST", body: { speaker, text }, signal })).blob();

/** @param {File} file @returns {Promise<{entries: Array<object>, notices: Array<object>}>} */
export const read = (id, file) =>
  json(at(id, `read?name=${part(file.name.slice(0, 200))}`), { method: "POST", body: file });

/** @param {"csv" | "txt"} format */
export const fileUrl = (id, format) => `studio/${at(id, `file?format=${format}`)}`;
