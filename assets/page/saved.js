/** Whether the studio has everything, and how far back and forth the history goes. */
import { byId, setData, setText } from "./dom.js";
import { notice, refused } from "./notices.js";

const WORDS = { saved: "Saved", saving: "Saving…", offline: "Not saved yet" };

/** @param {import("./project.js").Project} project @param {import("./acts.js").Acts} acts */
export function showSaved(project, acts) {
  const show = () => {
    setText(byId("saved"), WORDS[project.saving]);
    setData(byId("saved"), "state", project.saving);
    const text = "Your edits are kept in this browser and sent as soon as the studio answers.";
    notice("unsaved", { kind: "warning", title: "The studio can’t be reached.", text: project.saving === "offline" ? text : null });
  };
  project.addEventListener("saved", show);
  project.addEventListener("storage", ({ detail }) => {
    notice("storage", { kind: "error", title: "The project can’t be kept at the moment.", text: detail });
  });
  project.addEventListener("job", () => {
    const text = project.rendering ? null : (project.job?.summary?.message ?? null);
    notice("render", { kind: "warning", title: "The reading ended early.", text });
  });
  project.addEventListener("refused", ({ detail }) => refused("The edit was refused and taken back", detail));
  project.addEventListener("change", () => {
    byId("undo").disabled = !project.view.can_undo && project.saving === "saved";
    byId("redo").disabled = !project.view.can_redo;
  });
  byId("undo").addEventListener("click", () => acts.travel("undo"));
  byId("redo").addEventListener("click", () => acts.travel("redo"));
  show();
}
