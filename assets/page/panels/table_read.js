/** The table read: its link, and where this page's play-head is, which it follows. */
import * as api from "../core/api.js";
import { bus } from "../core/bus.js";
import { byId } from "../core/dom.js";
import { showDone, showError } from "../core/notices.js";
import { t } from "../core/texts.js";

/** @import { Parts } from "../core/types" */

const LOCAL = new Set(["localhost", "127.0.0.1", "[::1]"]);

export class TableRead {
  #parts;
  #sent = "";
  #isSending = false;

  /** @param {Pick<Parts, "project" | "player">} parts */
  constructor(parts) {
    this.#parts = parts;
    bus.on("project.opened", () => (byId("table-read").href = this.#address));
    bus.on("player.changed", () => this.#send());
    byId("table-read-copy").addEventListener("click", () => this.#copy());
  }

  get #address() {
    return new URL(`studio/read?project=${encodeURIComponent(this.#parts.project.id)}`, document.baseURI).href;
  }

  async #copy() {
    const field = document.createElement("input");
    field.value = this.#address;
    byId("project-panel").append(field);
    const isLocal = LOCAL.has(location.hostname);
    await copyText(field, isLocal ? t`The link is copied. It opens on this machine only: for a phone, start the studio with --host 0.0.0.0.` : undefined);
    field.remove();
  }

  /** One request at a time; of what happens meanwhile, the latest is sent next. */
  async #send() {
    const { project, player } = this.#parts;
    const heard = { line_id: player.line_id ?? null, playing: player.playing };
    const words = JSON.stringify([project.id, heard]);
    if (this.#isSending || words === this.#sent || !project.id) return;
    this.#sent = words;
    this.#isSending = true;
    try {
      await api.movePlayHead(project.id, heard);
    } catch {
      // The next one says where it is then.
    }
    this.#isSending = false;
    this.#send();
  }
}

/** Copy a field's text, without the clipboard's own interface where that is closed, as over plain http. */
export async function copyText(field, said = t`The link is copied.`) {
  field.focus();
  field.select();
  try {
    if (navigator.clipboard) await navigator.clipboard.writeText(field.value);
    else document.execCommand("copy");
    showDone(said);
  } catch (error) {
    showError(t`Couldn’t copy it. Select it and copy it yourself`, error);
  }
}
