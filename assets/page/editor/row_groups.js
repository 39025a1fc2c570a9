/** Rows stand in groups: of what is far out of sight, the browser lays out and looks through groups and not each of their rows. */

/** A row that is put below the last one of so many begins a group. */
const MOST = 25;
/** More than the height above and below the list for which Chromium lays rows out ahead. */
const NEAR = "2000px 0px";

/** @param {Element} row @returns {HTMLElement | undefined} the row above it, in its group or the one before */
export function rowAbove(row) {
  return /** @type {any} */ (row.previousElementSibling ?? row.parentElement.previousElementSibling?.lastElementChild);
}

/** @param {Element} row @returns {HTMLElement | undefined} the row below it */
export function rowBelow(row) {
  return /** @type {any} */ (row.nextElementSibling ?? row.parentElement.nextElementSibling?.firstElementChild);
}

/** The groups of a list; none is empty, and a row stays in its own while it isn't moved. */
export class RowGroups {
  #list;
  #watcher;

  /** @param {HTMLElement} list */
  constructor(list) {
    this.#list = list;
    // Without a width the list isn't shown at all, which says nothing of where they are.
    const look = (entries) => entries.forEach(({ target, isIntersecting, boundingClientRect: { width } }) =>
      width && target.classList.toggle("far", !isIntersecting));
    this.#watcher = new IntersectionObserver(look, { root: list, rootMargin: NEAR });
  }

  get first() {
    return this.#list.firstElementChild?.firstElementChild;
  }

  get last() {
    return this.#list.lastElementChild?.lastElementChild;
  }

  /** Put a row below another one, or above all of them. @param {HTMLElement} row @param {Element | null} [above] */
  put(row, above) {
    const old = row.parentElement;
    const group = above ? above.parentElement : this.#list.firstElementChild;
    const isFull = above && !above.nextElementSibling && group.children.length >= MOST;
    if (!group || isFull) this.#begin(group).append(row);
    else group.insertBefore(row, above ? above.nextElementSibling : group.firstElementChild);
    if (old) this.#left(old);
    this.touch(row);
  }

  /** @param {HTMLElement} row */
  remove(row) {
    const group = row.parentElement;
    row.remove();
    this.#left(group);
  }

  /** A row came, went or was hidden: its group is laid out, so that the browser knows its height when it is far. @param {Element} row */
  touch(row) {
    this.#layOut(row.parentElement);
  }

  #begin(above) {
    const group = document.createElement("div");
    group.className = "line-group";
    group.setAttribute("role", "presentation");
    return this.#list.insertBefore(group, above?.nextElementSibling ?? null);
  }

  #left(group) {
    if (group.firstElementChild) return this.#layOut(group);
    this.#watcher.unobserve(group);
    return group.remove();
  }

  /** Until the next frame, after which the watcher tells of it again. */
  #layOut(group) {
    group.classList.remove("far");
    this.#watcher.unobserve(group);
    this.#watcher.observe(group);
  }
}
