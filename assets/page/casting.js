/** Who speaks for whom: what the cast panel shows is what the project holds. */

import { ScriptLanguage } from "./script_language.js";
import { followTries } from "./tries.js";

/**
 * @param {import("./project.js").Project} project @param {import("./speakers.js").Speakers} speakers
 * @param {{cast: object, marks: object}} editor who speaks in which place; marks the lines of one
 */
export function followCast(project, speakers, { cast, marks }) {
  const language = new ScriptLanguage();
  followTries(project);
  project.addEventListener("change", ({ detail }) => {
    if (!detail.meta) return;
    speakers.showCast(cast.speakers, project.view.cast);
    language.show(project.view.settings.language ?? null);
  });
  speakers.addEventListener("offer", ({ detail }) => language.offer(detail.languages));
  language.addEventListener("choose", ({ detail }) =>
    project.edit([{ op: "settings", fields: { language: detail } }]));
  speakers.addEventListener("changed", () => project.look());
  speakers.addEventListener("mark", ({ detail }) => marks.markSpeaker(detail.name));
  speakers.addEventListener("rename", ({ detail }) => project.edit([{ op: "rename_speaker", ...detail }]));
  speakers.addEventListener("choose", ({ detail }) =>
    project.edit([{ op: "cast", speaker: detail.name, voice: detail.voice || null }]));
}
