/** What the state of a line means for a render. */

/** Whether a render would make it. */
export function isMissing({ state, locked, take, kind }) {
  if (kind === "silence" || (locked && take)) return false;
  return state === "none" || state === "stale" || state === "failed";
}

/** Whether it is being made. */
export function isPending({ state }) {
  return state === "queued" || state === "generating";
}
