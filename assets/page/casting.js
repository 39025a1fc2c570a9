/** Who speaks for whom: what the cast panel shows is what the project holds. */

/** @param {import("./project.js").Project} project @param {import("./speakers.js").Speakers} speakers */
export function followCast(project, speakers) {
  project.addEventListener("change", ({ detail }) => {
    if (detail.meta) speakers.showCast(project.view.speakers, project.view.cast);
  });
  speakers.addEventListener("changed", () => project.look());
  speakers.addEventListener("rename", ({ detail }) => project.edit([{ op: "rename_speaker", ...detail }]));
  speakers.addEventListener("choose", ({ detail }) =>
    project.edit([{ op: "cast", speaker: detail.name, voice: detail.voice || null }]));
}
