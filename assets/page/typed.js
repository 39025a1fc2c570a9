/** Which fields hold typing that nothing has taken yet; what they hold is the person's until then. */
const holding = new WeakSet();
const OF_LETTERS = 'textarea, input:not([type="range"], [type="checkbox"], [type="radio"], [type="file"])';

document.addEventListener("input", ({ target }) => target.matches?.(OF_LETTERS) && holding.add(target), true);
for (const end of ["change", "focusout"]) {
  document.addEventListener(end, ({ target }) => holding.delete(target), true);
}

/** @param {Element} field @returns {boolean} */
export function holdsTyping(field) {
  return holding.has(field);
}
