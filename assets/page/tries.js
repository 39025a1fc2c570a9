/** How often a line is read while its take is doubtful; the least doubtful take is used. */
import { byId } from "./dom.js";

export function followTries(project) {
  const select = /** @type {HTMLSelectElement} */ (byId("tries"));
  select.addEventListener("change", () =>
    project.edit([{ op: "settings", fields: { tries: Number(select.value) } }]));
  project.addEventListener("change", () => {
    select.value = String(project.view.settings.tries ?? 1);
  });
}
