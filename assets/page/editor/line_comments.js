/** Comments on lines: those of the line in its panel, a badge in the row, and a list of all that are open. */
import { bus } from "../core/bus.js";
import { byId, focusedElement, fromTemplate, isDirty, setData, setHidden, setText } from "../core/dom.js";
import { formatCount, formatDateTime } from "../core/format.js";
import { localStore } from "../core/local_store.js";
import { announce, showDone } from "../core/notices.js";
import { t } from "../core/texts.js";
import { newId } from "../document/document.js";
import { Sheet } from "../voices/sheet.js";

/** @import { LineComment, Parts } from "../core/types" */

const NAME_KEY = "tableread.name";

export class LineComments {
  #parts;
  #sheet = new Sheet(byId("comments-panel"));
  /** The badges of rows that have open comments. */
  #badges = new Map();
  /** @type {LineComment[] | null} */
  #shown = null;
  #lineId = null;
  /** What is written of a comment and isn't sent yet, by line. */
  #drafts = new Map();

  /** @param {Pick<Parts, "project" | "selection" | "lines" | "show">} parts */
  constructor(parts) {
    this.#parts = parts;
    bus.on("project.changed", (change) => this.#changed(change));
    bus.on("selection.changed", () => this.#showPanel());
    byId("comment-form").addEventListener("submit", (event) => this.#add(event));
    byId("comments-open").addEventListener("click", () => this.#openList());
    byId("comments-resolved").addEventListener("change", () => this.#showList());
    byId("lines").addEventListener("click", ({ target }) => target.closest(".line-comments") && parts.show("line"));
  }

  get #all() {
    return this.#parts.project.view.comments;
  }

  #changed({ order }) {
    const isNew = this.#shown !== this.#all;
    this.#shown = this.#all;
    if (!isNew && !order) return;
    this.#showBadges();
    this.#showPanel();
    if (this.#sheet.isOpen) this.#showList();
  }

  #showBadges() {
    const counts = new Map();
    for (const { line_id: lineId, resolved } of this.#all) {
      if (!resolved) counts.set(lineId, (counts.get(lineId) ?? 0) + 1);
    }
    for (const [lineId, badge] of this.#badges) {
      if (counts.has(lineId)) continue;
      badge.remove();
      this.#badges.delete(lineId);
    }
    for (const [lineId, count] of counts) this.#badge(lineId, count);
    const open = [...counts.values()].reduce((sum, count) => sum + count, 0);
    setHidden(byId("comments-open"), this.#all.length === 0);
    setText(byId("comments-open").querySelector(".comments-count"), String(open));
    byId("comments-open").ariaLabel = t`Comments: ${open} open`;
  }

  #badge(lineId, count) {
    const row = this.#parts.lines.row(lineId)?.root;
    if (!row) return;
    const badge = this.#badges.get(lineId) ?? fromTemplate("comments-badge-template");
    const place = row.querySelector(".line-head") ?? row.querySelector(".line-body");
    if (badge.parentElement !== place) place.append(badge);
    setText(badge.querySelector(".comments-count"), String(count));
    badge.ariaLabel = formatCount(count, "open comment");
    badge.title = badge.ariaLabel;
    this.#badges.set(lineId, badge);
  }

  #showPanel() {
    const { selection, project } = this.#parts;
    const [lineId] = selection.ids.length === 1 ? selection.ids : [null];
    setHidden(byId("comments-part"), !project.line(lineId));
    if (!isDirty(byId("comment-author"))) byId("comment-author").value = localStore.get(NAME_KEY) ?? "";
    if (lineId !== this.#lineId) {
      this.#drafts.set(this.#lineId, byId("comment-text").value);
      byId("comment-text").value = this.#drafts.get(lineId) ?? "";
    }
    this.#lineId = lineId;
    const own = this.#all.filter((one) => one.line_id === lineId);
    refill(byId("comments"), own.map((one) => this.#item(one)));
  }

  #openList() {
    this.#sheet.open();
    this.#showList();
  }

  #showList() {
    const withResolved = byId("comments-resolved").checked;
    const { order } = this.#parts.project.view;
    const places = new Map(order.map((lineId, place) => [lineId, place]));
    const rows = this.#all
      .filter((one) => (withResolved || !one.resolved) && places.has(one.line_id))
      .sort((a, b) => places.get(a.line_id) - places.get(b.line_id));
    refill(byId("comments-list"), rows.map((one) => this.#item(one, true)));
    setHidden(byId("comments-none"), rows.length > 0);
  }

  /** @param {LineComment} comment @param {boolean} withPlace whether it leads to its line */
  #item(comment, withPlace = false) {
    const row = fromTemplate("comment-template");
    const find = (name) => row.querySelector(`.comment-${name}`);
    const { author, text, resolved } = comment;
    row.dataset.comment = comment.comment_id;
    setData(row, "resolved", String(resolved));
    setText(find("author"), author);
    setText(find("time"), formatDateTime(comment.at_s));
    find("time").setAttribute("datetime", new Date(comment.at_s * 1000).toISOString());
    setText(find("text"), text);
    setText(find("resolve"), resolved ? t`Reopen` : t`Resolve`);
    find("resolve").setAttribute("aria-pressed", String(resolved));
    find("resolve").addEventListener("click", () => this.#resolve(comment));
    find("delete").ariaLabel = t`Delete the comment of ${author}`;
    find("delete").addEventListener("click", () => this.#delete(comment));
    setHidden(find("place"), !withPlace);
    setText(find("place"), this.#placeOf(comment.line_id));
    find("place").addEventListener("click", () => this.#jump(comment.line_id));
    return row;
  }

  #placeOf(lineId) {
    const number = this.#parts.lines.row(lineId)?.number?.textContent;
    const { speaker, text } = this.#parts.project.line(lineId) ?? {};
    return number ? t`Line ${number}, ${speaker ?? t`Recording`}` : (text || t`Pause`);
  }

  #jump(lineId) {
    const { selection, show } = this.#parts;
    this.#sheet.close();
    selection.go(lineId);
    selection.focus();
    show("line");
  }

  #add(event) {
    event.preventDefault();
    const [author, text] = [byId("comment-author").value.trim(), byId("comment-text").value.trim()];
    if (!text) return byId("comment-text").focus();
    if (!author) return byId("comment-author").focus();
    localStore.set(NAME_KEY, author);
    byId("comment-text").value = "";
    this.#parts.project.edit([{ op: "comment", comment_id: newId(), line_id: this.#lineId, author, text }]);
    return announce(t`Comment added.`);
  }

  #resolve({ comment_id: commentId, resolved }) {
    this.#parts.project.edit([{ op: "change_comment", comment_id: commentId, resolved: !resolved }]);
    announce(resolved ? t`Comment reopened.` : t`Comment resolved.`);
  }

  #delete({ comment_id: commentId, line_id: lineId, author, text }) {
    this.#parts.project.edit([{ op: "delete_comment", comment_id: commentId }]);
    const back = { op: /** @type {const} */ ("comment"), comment_id: commentId, line_id: lineId, author, text };
    showDone(t`Comment deleted.`, { label: t`Undo`, press: () => this.#parts.project.edit([back]) });
  }
}

/** Replace the rows of a list; the focus stays on its comment, or on the one that is now in its place. */
function refill(list, rows) {
  const held = focusedElement();
  const row = held?.closest(".comment");
  const place = row ? [...list.children].indexOf(row) : -1;
  list.replaceChildren(...rows);
  if (place < 0 || !rows.length) return;
  const next = rows.find(({ dataset }) => dataset.comment === row.dataset.comment) ?? rows[Math.min(place, rows.length - 1)];
  const control = [...held.classList].find((name) => name.startsWith("comment-"));
  next.querySelector(`.${control}`)?.focus();
}
