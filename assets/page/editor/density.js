/**
 * How dense the rows are: a choice of this browser. Without one they are compact in a low window; in a window too narrow for
 * a name beside the words they never are.
 */
import { bus } from "../core/bus.js";
import { byId, setData, setHidden } from "../core/dom.js";
import { localStore } from "../core/local_store.js";

const KEY = "tableread.density";
const LOW = matchMedia("(max-height: 600px) and (min-width: 400px)");
const TINY = matchMedia("(max-width: 300px)");

export function keepDensity() {
  const button = byId("density");
  const wished = () => localStore.get(KEY) ?? (LOW.matches ? "compact" : "roomy");
  const isCompact = () => !TINY.matches && wished() === "compact";
  const show = () => {
    setData(document.body, "density", isCompact() ? "compact" : "roomy");
    setHidden(button, TINY.matches);
    button.setAttribute("aria-pressed", String(isCompact()));
    bus.emit("density.changed");
  };
  button.addEventListener("click", () => {
    localStore.set(KEY, isCompact() ? "roomy" : "compact");
    show();
  });
  for (const size of [LOW, TINY]) size.addEventListener("change", show);
  show();
}
