/** How dense the rows are: a choice of this browser; in a low window that is wide enough for it they are compact without one. */
import { bus } from "../core/bus.js";
import { byId, setData } from "../core/dom.js";
import { localStore } from "../core/local_store.js";

const KEY = "tableread.density";
const LOW = matchMedia("(max-height: 600px) and (min-width: 400px)");

export function keepDensity() {
  const button = byId("density");
  const isCompact = () => (localStore.get(KEY) ?? (LOW.matches ? "compact" : "roomy")) === "compact";
  const show = () => {
    setData(document.body, "density", isCompact() ? "compact" : "roomy");
    button.setAttribute("aria-pressed", String(isCompact()));
    bus.emit("density.changed");
  };
  button.addEventListener("click", () => {
    localStore.set(KEY, isCompact() ? "roomy" : "compact");
    show();
  });
  LOW.addEventListener("change", show);
  show();
}
