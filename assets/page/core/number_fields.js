/** Says why a number that somebody wrote isn't taken, in every field of the page. */
import { showDone } from "./notices.js";
import { t } from "./texts.js";

/** Listen before and after the fields' own listeners, which put back what was there. */
export function explainRefusedNumbers() {
  let [written, refused] = ["", ""];
  addEventListener("change", ({ target }) => {
    if (!isNumber(target)) return;
    [written, refused] = [target.value, reasonOf(target)];
  }, true);
  addEventListener("change", ({ target }) => {
    // Where a field takes values between its steps, they stay.
    if (!isNumber(target)) return;
    const isTaken = !refused || (target.validity.stepMismatch && target.value === written);
    if (!isTaken) showDone(refused);
  });
}

/** @param {EventTarget} target @returns {target is HTMLInputElement} */
function isNumber(target) {
  return target instanceof HTMLInputElement && target.type === "number";
}

/** @param {HTMLInputElement} field @returns {string} why it holds no number that can be taken, empty if it does */
function reasonOf(field) {
  const { validity, min, max, step } = field;
  if (validity.valid) return "";
  const name = (field.ariaLabel ?? field.labels?.[0]?.textContent ?? "").replace(/\s+/g, " ").trim();
  if (validity.stepMismatch && !validity.rangeUnderflow && !validity.rangeOverflow) return t`${name} goes in steps of ${step}.`;
  return t`${name} needs a number from ${min} to ${max}.`;
}
