/** Voices that were removed, for as long as they can be brought back. */
import * as api from "./voiceapi.js";
import { byId, fromTemplate, setHidden, setText } from "./dom.js";
import { done, refused } from "./notices.js";
import { day } from "./voicesamples.js";
import { ask } from "./voicesheet.js";

/** Event "changed" after one came back or was deleted for good. */
export class VoiceRemoved extends EventTarget {
  #shown = "[]";

  /** @param {Array<object>} removed {speaker_id, name, removed_s}, the latest first */
  show(removed) {
    const shown = JSON.stringify(removed);
    if (shown === this.#shown) return;
    this.#shown = shown;
    setHidden(byId("library-removed"), removed.length === 0);
    setText(byId("library-removed-count"), `(${removed.length})`);
    byId("library-removed-list").replaceChildren(...removed.map((one) => this.#row(one)));
  }

  #row({ speaker_id: id, name, removed_s }) {
    const row = fromTemplate("gone-template");
    setText(row.querySelector(".gone-name"), name);
    setText(row.querySelector(".gone-day"), day(1000 * removed_s));
    const [back, away] = row.querySelectorAll("button");
    back.ariaLabel = `Restore ${name}`;
    back.addEventListener("click", () =>
      this.#try("This voice can't be brought back", async () => {
        const speaker = await api.restoreSpeaker(id);
        done(`${speaker.name} is back.`);
      }));
    away.ariaLabel = `Delete ${name} for good`;
    away.addEventListener("click", () =>
      ask(`Delete ${name} for good?`, "Its recordings can't be brought back then.", () =>
        this.#try("This voice can't be deleted", async () => {
          await api.forgetSpeaker(id);
          done(`${name} is deleted.`);
        })));
    return row;
  }

  async #try(title, act) {
    try {
      await act();
      byId("voice-new").focus();
    } catch (error) {
      refused(title, error);
    }
    this.dispatchEvent(new Event("changed"));
  }
}
