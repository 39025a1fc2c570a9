/** Where the person was in a project, for the next visit: the line, and the play-head. */
import { stored } from "./stored.js";

const KEY = "tableread.places";
const KEPT = 30;

/** @param {object} parts project, selection, player, lines, projects */
export function keepPlace({ project, selection, player, lines, projects }) {
  const store = () => {
    if (!project.id) return;
    const places = new Map(stored.json(KEY, []));
    places.delete(project.id);
    places.set(project.id, { line: selection.current, heard: player.line_id });
    stored.set(KEY, JSON.stringify([...places].slice(-KEPT)));
  };
  addEventListener("pagehide", store);
  document.addEventListener("visibilitychange", () => document.hidden && store());
  projects.addEventListener("closing", store);
  projects.addEventListener("opened", () => {
    const { line, heard } = new Map(stored.json(KEY, [])).get(project.id) ?? {};
    const known = (lineId) => (project.line(lineId) ? lineId : null);
    selection.go(known(line));
    if (known(heard)) player.seek(player.playlist.startOf(heard));
    if (known(line ?? heard)) lines.reveal(line ?? heard, { calm: true });
  });
}
