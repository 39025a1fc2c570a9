/** The word at a place of a take, and at an offset of its text. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { inUnits, wordAt, wordOf } from "../../assets/page/playback/word_cache.js";

// "😀" is one character for the studio, and two units here.
const text = "😀 Go on, now";
const known = { text, words: inUnits(text, [[2, 4, 100, 300], [5, 7, 300, 500], [9, 12, 900, 1200]]) };

describe("words", () => {
  it("stand where the browser counts", () => {
    assert.deepEqual(known.words.map(({ from, to }) => text.slice(from, to)), ["Go", "on", "now"]);
    assert.equal(known.words[0].start, 2400);
  });

  it("are shown from their beginning until the next", () => {
    const at = (ms) => wordAt(known, ms * 24);
    assert.equal(at(99), null);
    assert.equal(at(100), known.words[0]);
    assert.equal(at(299), known.words[0]);
    assert.equal(at(300), known.words[1]);
    assert.equal(at(800), known.words[1]);
    assert.equal(at(5000), known.words[2]);
    assert.equal(wordAt({ text: "", words: [] }, 0), null);
  });

  it("are found by a place in the text", () => {
    assert.equal(wordOf(known, 0), known.words[0]);
    assert.equal(wordOf(known, 4), known.words[0]);
    assert.equal(wordOf(known, 6), known.words[1]);
    assert.equal(wordOf(known, 9), known.words[2]);
    assert.equal(wordOf(known, 99), known.words[2]);
    assert.equal(wordOf({ text: "", words: [] }, 0), null);
  });
});
