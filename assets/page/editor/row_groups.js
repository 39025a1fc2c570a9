/** Rows stand in groups: of what is far out of sight, the browser lays out and looks through groups and not each of their rows. */

/** A row that is put above or below so many begins a group; among twice as many, they become two. */
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
    const isAmong = above?.nextElementSibling;
    if (isAmong && above.parentElement.children.length >= 2 * MOST) this.#split(above);
    const group = above ? above.parentElement : this.#list.firstElementChild;
    const isFull = !isAmong && group?.children.length >= MOST;
    if (!group || isFull) this.#begin(above && group).append(row);
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

  /** What stands below a row comes into another group; where somebody writes there, it and what stands above does. */
  #split(row) {
    const group = row.parentElement;
    const rows = [...group.children];
    const at = rows.indexOf(row) + 1;
    const isWritten = rows.slice(at).some((one) => one.contains(document.activeElement));
    const other = this.#begin(isWritten ? group.previousElementSibling : group);
    other.append(...(isWritten ? rows.slice(0, at) : rows.slice(at)));
    this.#layOut(other);
  }

  /** A group below another one, or above all of them. */
  #begin(above) {
    const group = document.createElement("div");
    group.className = "line-group";
    group.setAttribute("role", "presentation");
    return this.#list.insertBefore(group, above ? above.nextElementSibling : this.#list.firstElementChild);
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
