/** The save status, and the undo and redo buttons. */
import { bus } from "../core/bus.js";
import { byId, setData, setText } from "../core/dom.js";
import { showError, showNotice } from "../core/notices.js";
import { t, translateServer } from "../core/texts.js";

const WORDS = { saved: t`Saved`, saving: t`Saving…`, offline: t`Not saved yet` };
const KEPT = t`Your edits are kept in this browser and sent as soon as the studio accepts them.`;
const NOT_KEPT = t`This browser can’t store your edits: keep this page open until they are sent.`;
const SHOWN_CHARS = 200;

/** @param {import("../document/project.js").Project} project @param {import("../editor/commands.js").Commands} commands */
export function showSaveStatus(project, commands) {
  const show = () => {
    setText(byId("saved"), WORDS[project.saving]);
    setData(byId("saved"), "state", project.saving);
    showUnsaved(project);
  };
  bus.on("project.saving", show);
  let storage = null;
  const showStorage = () => showNotice("storage", { ...storageWords(project.job), text: storage });
  bus.on("project.storage", (text) => {
    storage = translateServer(text);
    showStorage();
  });
  bus.on("project.job", () => {
    showStorage();
    const title = project.job?.state === "cancelled" ? t`Generation stopped early.` : t`No take was added.`;
    const text = project.rendering ? null : translateServer(project.job?.summary?.message ?? null);
    showNotice("render", { kind: "warning", title, text });
  });
  bus.on("project.refused", ({ batch, error }) => {
    const message = [error.message, written(batch)].filter(Boolean).join(" ");
    showError(t`The edit was rejected and undone`, { message });
  });
  bus.on("project.failed", () => showFailed(project));
  bus.on("project.opened", () => {
    showNotice(`left:${project.id}`, {});
    showFailed(project);
  });
  bus.on("project.left", ({ id, name }) => {
    const text = t`They are kept in this browser and sent when you open that project again.`;
    showNotice(`left:${id}`, { kind: "warning", title: t`Some edits of “${name || t`Untitled`}” haven’t been sent yet.`, text });
  });
  bus.on("project.changed", () => {
    byId("undo").disabled = !project.view.can_undo && project.saving === "saved";
    byId("redo").disabled = !project.view.can_redo;
  });
  byId("undo").addEventListener("click", () => commands.travel("undo"));
  byId("redo").addEventListener("click", () => commands.travel("redo"));
  show();
}

function storageWords(job) {
  if (job?.state === "waiting") return { kind: "warning", title: t`Generation is paused: the disk is full.` };
  return { kind: "error", title: t`The project can’t be saved at the moment.` };
}

function showUnsaved({ saving, trouble, kept }) {
  const title = trouble ? t`The studio can’t accept your edits at the moment.` : t`Can’t reach the studio.`;
  const text = [trouble?.message, kept ? KEPT : NOT_KEPT].filter(Boolean).join(" ");
  showNotice("unsaved", { kind: trouble ? "error" : "warning", title, text: saving === "offline" ? text : null });
}

/** Edits that repeatedly cause a fault of the studio are set aside, so that the others are sent. */
function showFailed(project) {
  const batch = project.aside.find(({ error }) => !error.conflicts.length);
  const settle = (ops) => {
    project.settle(batch, ops);
    showFailed(project);
  };
  showNotice("failed", {
    kind: "error",
    title: t`An edit couldn’t be saved and was undone.`,
    text: batch ? [batch.error.message, written(batch)].filter(Boolean).join(" ") : null,
    act: { label: t`Try again`, press: () => settle(batch.ops) },
    dismiss: () => settle([]),
  });
}

/** The text in edits, so that the user can copy it. */
function written({ ops }) {
  const fields = ops.flatMap((op) => (op.op === "insert" ? op.lines : [op.fields ?? {}]));
  const text = fields.map((one) => one.text).filter(Boolean).join(" / ");
  const shown = text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text;
  return shown && t`What you wrote: “${shown}”`;
}
