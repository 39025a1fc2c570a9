/** Badges on rows: what differs from the usual is said, and nothing else. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { badgesOf } from "../../assets/page/editor/row_badges.js";

const line = (more = {}) => ({ kind: "speech", params: {}, language: null, seed: null, ...more });
const plain = { next: undefined, directions: [], isStarred: false };
const texts = (of, about = {}) => badgesOf(of, { ...plain, ...about }).map(({ text }) => text);

describe("the badges of a row", () => {
  it("has none for a line as usual, nor for a pause", () => {
    assert.deepEqual(texts(line()), []);
    assert.deepEqual(texts(line({ params: { speed: 1 } })), []);
    assert.deepEqual(texts(line({ kind: "silence", params: { mood: "sad" } })), []);
  });

  it("names mood, speed, language, seed, pause and star", () => {
    const own = line({ params: { mood: "sad", speed: 0.8 }, language: "de", seed: 0 });
    const next = { kind: "silence", unspoken: null, duration_s: 2 };
    assert.deepEqual(texts(own, { next, isStarred: true }), ["★", "sad", "0.8 ×", "de", "seed 0", "pause 2 s"]);
    assert.deepEqual(texts(line(), { next: { ...next, unspoken: "heading", duration_s: 0 } }), []);
  });

  it("shortens a long instruction, and says it whole in its title", () => {
    const instruct = "very slowly, as somebody who has to think of each word";
    const [badge] = badgesOf(line({ params: { instruct } }), plain);
    assert.ok(badge.text.length < 30);
    assert.ok(badge.title.endsWith(instruct));
  });

  it("says that a direction stands in the text", () => {
    const directions = [{ start: 0, end: 9, note: "Said in a whisper.", followed: true }];
    assert.deepEqual(badgesOf(line(), { ...plain, directions }), [
      { kind: "direction", text: "direction", title: "Said in a whisper." },
    ]);
    const lost = [...directions, { start: 12, end: 20, note: "This voice can’t.", followed: false }];
    assert.deepEqual(badgesOf(line(), { ...plain, directions: lost }), [
      { kind: "ignored", text: "direction", title: "Said in a whisper. This voice can’t." },
    ]);
  });
});
