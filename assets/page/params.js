/** Controls for what the chosen voice engine lets a line say about itself. */
import { byId, fromTemplate, setHidden, setText } from "./dom.js";
import { holdsTyping } from "./typed.js";

/** Event "change" with `detail` {name, value}; a value of null means the engine's own. */
export class Params extends EventTarget {
  #list = byId("params");
  #shown = null;
  #rows = new Map();
  #strays = null;
  #elsewhere = new Set();

  /** @param {Array<object>} params of the engine @param {string[]} elsewhere those with fields of their own */
  offer(params, elsewhere) {
    this.#elsewhere = new Set(elsewhere);
    const shown = JSON.stringify(params);
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.#rows.clear();
    this.#list.replaceChildren(...params.map((param) => this.#row(param)));
  }

  /** @param {Array<object>} lines whose values are shown; different ones are left open */
  show(lines) {
    for (const [name, { param, field, number, reset }] of this.#rows) {
      const values = new Set(lines.map((line) => line.params?.[name] ?? null));
      const own = values.size === 1 ? [...values][0] : undefined;
      if (!holdsTyping(number)) number.value = own === undefined ? "" : String(own ?? param.default);
      if (!field.matches(":active")) field.value = String(own ?? param.default);
      number.placeholder = own === undefined ? "different" : "";
      reset.hidden = own === null;
    }
    this.#showStrays(lines);
  }

  /** Settings of the lines that the engine hasn't: seen, and taken away. */
  #showStrays(lines) {
    const all = lines.flatMap(({ params }) => Object.entries(params ?? {}));
    const strays = new Map();
    for (const [name, value] of all) {
      if (!this.#rows.has(name) && !this.#elsewhere.has(name)) {
        strays.set(name, (strays.get(name) ?? new Set()).add(String(value)));
      }
    }
    const shown = JSON.stringify([...strays].map(([name, values]) => [name, ...values]));
    if (shown === this.#strays) return;
    this.#strays = shown;
    setHidden(byId("strays-part"), strays.size === 0);
    byId("strays").replaceChildren(...[...strays].map(([name, values]) => this.#stray(name, values)));
  }

  #stray(name, values) {
    const row = fromTemplate("stray-template");
    setText(row.querySelector(".stray-name"), values.size > 1 ? `${name}: different` : `${name}: ${[...values][0]}`);
    const remove = row.querySelector("button");
    remove.ariaLabel = `Remove ${name}`;
    remove.addEventListener("click", () =>
      this.dispatchEvent(new CustomEvent("change", { detail: { name, value: null } })));
    return row;
  }

  #row(param) {
    const row = fromTemplate("param-template");
    const [field, number, reset] = [".param-range", ".param-number", ".param-reset"].map((one) => row.querySelector(one));
    setText(row.querySelector(".param-label"), param.label);
    row.title = param.help;
    for (const input of [field, number]) {
      Object.assign(input, { min: param.minimum, max: param.maximum, step: param.step });
      input.setAttribute("aria-label", param.label);
      input.addEventListener("change", () => this.#tell(param, input.value));
    }
    field.addEventListener("input", () => (number.value = field.value));
    reset.setAttribute("aria-label", `${param.label}: the engine’s own`);
    reset.addEventListener("click", () => this.#tell(param, null));
    this.#rows.set(param.name, { param, field, number, reset });
    return row;
  }

  #tell({ name, minimum, maximum }, written) {
    const usable = written === null || (written !== "" && Number(written) >= minimum && Number(written) <= maximum);
    const value = written === null ? null : Number(written);
    if (usable) this.dispatchEvent(new CustomEvent("change", { detail: { name, value } }));
  }
}
