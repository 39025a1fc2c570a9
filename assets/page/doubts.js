/** What may not be right about takes, as the studio measured it, until somebody finds them right. */

/** A line's doubts, where its take is of what it says now. @returns {string[]} sentences */
export function doubtsOf(line, accepted) {
  if (!line?.take || line.state !== "ready" || accepted.includes(line.take.take_id)) return [];
  return doubtsOfTake(line.take);
}

/** @param {object} take @returns {string[]} sentences */
export function doubtsOfTake({ doubts }) {
  return (doubts ?? []).map(({ message }) => message);
}
