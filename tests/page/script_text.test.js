/** Lines as script text and back, and how two texts differ. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  differingLines, looksLikeScript, offsetShift, serializeLines,
} from "../../assets/page/document/script_text.js";

describe("pasted text", () => {
  it("is a script for the studio where every row is somebody's", () => {
    for (const text of [
      "mara: One.\n\n[pause:1.5s]\nTom: Two: three.", "[Mara | seed:1] One.\nTom: Two.", "Mara:\n\\I **do**.",
    ]) {
      assert.equal(looksLikeScript(text), true, text);
    }
  });

  it("stays a paragraph otherwise", () => {
    for (const text of ["Mara: One.", "One.\nTwo.", "[pause:1s]\nMara: One.", "He said: no.\nAnd left."]) {
      assert.equal(looksLikeScript(text), false, text);
    }
  });
});

describe("copied lines", () => {
  it("say all that they hold", () => {
    const lines = [
      { kind: "speech", speaker: "Mara", text: "One." },
      { kind: "speech", speaker: "Mrs. [X]", text: "Two.", language: "de", seed: 4, params: { mood: "very angry", speed: 1.5 } },
      { kind: "silence", duration_s: 0.5 },
      { kind: "audio", path: "door|.wav" },
      { kind: "speech", speaker: "Mara", text: "I *do*." },
      { kind: "speech", speaker: "Music", text: "La." },
    ];
    assert.equal(serializeLines(lines), [
      "Mara: One.\n",
      '[Mrs. [X] | lang:de | mood:"very angry" | speed:1.5 | seed:4] Two.\n',
      "[pause:0.5s]\n",
      '[audio: "door\\u007c.wav"]\n',
      "Mara:\n\\I *do*.\n",
      "[Music |] La.\n",
    ].join(""));
  });
});

describe("two texts", () => {
  it("move a place with the words around it", () => {
    const at = offsetShift("one two three", "one 2 three");
    assert.deepEqual([0, 4, 8, 13].map(at), [0, 4, 6, 11]);
  });

  it("differ from the first line to the last", () => {
    assert.deepEqual(differingLines("a\nb\nc", "a\nx\ny\nc"), ["b", "x\ny"]);
    assert.deepEqual(differingLines("a", "a"), ["", ""]);
  });
});
