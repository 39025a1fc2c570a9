/** The studio's state: what of it is news, and the countdown that runs in the page. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { cardRank, chipWords, countDown, hearsWords, isNews, readyVoices, slotWords, stateWords, useWords, voiceWords } from "../../assets/page/panels/engine_state.js";

const model = (more = {}) => ({ state: "loaded", active: 0, fraction: null, unload_in_s: null, ...more });

describe("the studio's state", () => {
  it("counts down to the unloading, and never below nothing", () => {
    const described = model({ unload_in_s: 90 });
    assert.equal(stateWords(countDown(described, 0)), "unloads in 1:30");
    assert.equal(stateWords(countDown(described, 30_000)), "unloads in 1:00");
    assert.equal(stateWords(countDown(described, 300_000)), "unloads in 0:00");
    assert.equal(stateWords(model({ unload_in_s: 90, active: 1 })), "speaking");
    assert.equal(chipWords(described), "ready"); // the header counts nothing
    assert.equal(described.unload_in_s, 90);
  });

  it("says how many lines an engine reads at once, and when they are fewer than it could", () => {
    assert.equal(slotWords({ slots: null, usable_slots: null }), "");
    assert.equal(slotWords({ slots: 8, usable_slots: null }), slotWords({ slots: 8, usable_slots: 8 }));
    assert.match(slotWords({ slots: 8, usable_slots: 8 }), /up to 8 lines in one pass/);
    const narrowed = slotWords({ slots: 8, usable_slots: 1 });
    assert.match(narrowed, /1 of 8 lines in parallel since it ran out of memory/);
    assert.match(narrowed, /recovers by itself/);
  });

  it("says what each model that listens does, once it is here", () => {
    const card = (purpose, more = {}) => ({ purpose, reason: null, to_fetch: null, used_for: [], ...more });
    const say = (one) => useWords(one, (codes) => codes.join(" and "));
    assert.equal(say(card("words", { used_for: ["de", "en"] })), "Checks takes in de and en.");
    assert.match(say(card("words")), /^Not used/);
    assert.equal(say(card("voices")), "Compares the voices of new takes.");
    assert.equal(say(card("noise")), "Removes noise from voice samples.");
    assert.equal(say(card("voices", { to_fetch: "30 MB" })), "");
    assert.equal(hearsWords([card("words", { to_fetch: "30 MB" }), card("voices"), card("noise")]), false);
    assert.equal(hearsWords([card("voices"), card("words")]), true);
  });

  it("counts nothing where nothing is unloaded", () => {
    const kept = model();
    assert.equal(countDown(kept, 5_000), kept);
    assert.equal(chipWords(kept), "ready");
  });

  it("is no news while lines are read or a model is loaded further", () => {
    const known = { model: model(), speakers: [] };
    assert.equal(isNews({ engine: { in_flight: 1 } }, known), false);
    assert.equal(isNews({ engine: { in_flight: 1 }, model: model({ active: 1 }) }, known), false);
  });

  it("is news where voices, the engine or the model's state are others", () => {
    const known = { model: model(), speakers: [] };
    assert.equal(isNews({ speakers: [{ name: "Ida" }] }, known), true);
    assert.equal(isNews({ model: model({ state: "unloaded" }) }, known), true);
    assert.equal(isNews({ model: model(), backend: { name: "draft" } }, known), true);
    assert.equal(isNews({ model: model() }, null), true);
  });

  it("puts first what speaks, then what fits this machine, then what needs more", () => {
    const card = (name, more) => ({ name, reason: null, to_fetch: null, speed: null, expected_speed: 3, ...more });
    const cards = [
      card("server", { reason: "Name one." }),
      card("huge", { reason: "It needs packages.", large_packages: true }),
      card("large", { to_fetch: "2 GB", expected_speed: 0.6 }),
      card("small", { to_fetch: "60 MB" }),
      card("here, but slow", { speed: 0.4 }),
      card("here", { expected_speed: undefined }),
    ];
    const shown = cards.toSorted((one, other) => cardRank(one) - cardRank(other)).map(({ name }) => name);
    assert.deepEqual(shown, ["here", "here, but slow", "small", "large", "huge", "server"]);
  });

  it("says whose voices an engine has, and where a seed changes nothing", () => {
    assert.equal(voiceWords({ cloning: true, presets: 1, seeded: true }), "Voices cloned from recordings, 1 built-in voice");
    assert.match(voiceWords({ presets: 8, seeded: false }), /^8 built-in voices, every take differs slightly$/);
  });

  it("offers what is here before anything is downloaded, if it is fast and needs no sample", () => {
    const card = (name, more) => ({ name, reason: null, to_fetch: null, presets: 8, speed: 3, ...more });
    const cards = [
      card("slow", { speed: 0.5 }),
      card("cloner", { presets: 0 }),
      card("absent", { to_fetch: "60 MB" }),
      card("kitten"),
      card("draft"),
    ];
    assert.deepEqual(readyVoices(cards), ["kitten"]);
  });
});
