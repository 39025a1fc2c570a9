/** Gaps between lines: as long as the studio lays them, and what a drag makes of them. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { RATE_HZ, withOps } from "../../assets/page/document/document.js";
import { gapsBefore, spaceBefore, spaceEdit } from "../../assets/page/playback/gaps.js";
import { Playlist } from "../../assets/page/playback/playlist.js";

const CASES = JSON.parse(readFileSync(new URL("../dialog/gap_cases.json", import.meta.url), "utf8"));

const speech = (text, params = {}) => ({ line_id: text, kind: "speech", state: "ready", text, samples: RATE_HZ, params, unspoken: null, take: { take_id: text } });
const pause = (seconds) => ({ line_id: "pause", kind: "silence", state: "ready", text: "", duration_s: seconds, samples: seconds * RATE_HZ, unspoken: null, take: null });
const unspoken = (text, kind) => ({ ...pause(0), line_id: text, text, unspoken: kind });
const recording = () => ({ ...speech(""), kind: "audio", line_id: "bell" });

const LINES = {
  plain: [speech("Did you hear that?"), speech("Hear what?"), speech("Ça — là-bas, 水門で。")],
  none: [speech("One."), speech("Two.")],
  own: [speech("One."), speech("Two.", { gap_s: 0.8 }), speech("Three.", { gap_s: 0 })],
  pause: [speech("One."), pause(1), speech("Two.", { gap_s: 2 }), recording(), speech("Three.")],
  section: [unspoken("One", "heading"), speech("One."), speech("Two."), unspoken("Two", "heading"), unspoken("a note", "note"), speech("Three.")],
};

describe("gaps", () => {
  for (const { name, gap_s: gap, gaps_s: wanted } of CASES) {
    it(`are those of the studio: ${name}`, () => {
      assert.deepEqual(gapsBefore(LINES[name], { gap_s: gap }), wanted);
    });
  }

  it("lie between the lines of a playlist, and a place in one belongs to the line before", () => {
    const list = new Playlist(LINES.own, { gap_s: 0.35 });
    assert.deepEqual(list.starts, [0, 1.8 * RATE_HZ, 2.8 * RATE_HZ]);
    assert.equal(list.total, 3.8 * RATE_HZ);
    assert.equal(list.at(1.5 * RATE_HZ), 0);
    assert.equal(list.gapBefore("Two."), 0.8 * RATE_HZ);
  });

  it("don't begin a scene whose first line failed", () => {
    const failed = { ...speech("One."), state: "failed", samples: null, take: null };
    assert.equal(new Playlist([failed, speech("Two.")], { gap_s: 0.35 }).startOf("Two."), 0);
  });
});

describe("the space before a line", () => {
  it("is its gap", () => {
    const space = spaceBefore(new Playlist(LINES.own, { gap_s: 0.35 }), 1);
    assert.deepEqual([space.from, space.to, space.pause], [RATE_HZ, 1.8 * RATE_HZ, null]);
    assert.deepEqual(spaceEdit(space, 0.5, 1), { op: "set", line_ids: ["Two."], fields: { params: { gap_s: 0.5 } } });
  });

  it("is the pause before it", () => {
    const space = spaceBefore(new Playlist(LINES.pause, { gap_s: 0.35 }), 2);
    assert.deepEqual([space.from, space.to], [RATE_HZ, 2 * RATE_HZ]);
    assert.deepEqual(spaceEdit(space, 3, 1), { op: "set", line_ids: ["pause"], fields: { duration_s: 3 } });
  });

  it("is what is left before the start that a line has", () => {
    const list = new Playlist([speech("One.", { start_s: 0.5 }), speech("Two.", { start_s: 3, gap_s: 1 }), speech("Three.", { start_s: 2 })]);
    assert.deepEqual(list.starts, [0.5 * RATE_HZ, 3 * RATE_HZ, 4 * RATE_HZ]);
    const edit = spaceEdit(spaceBefore(list, 1), 2, 1.5);
    assert.deepEqual(edit.fields, { params: { start_s: 3.5, gap_s: 1 } });
  });

  it("isn't there before the first line", () => {
    assert.equal(spaceBefore(new Playlist(LINES.section), 1), null);
  });
});

describe("an edit of a gap", () => {
  const before = { lines: new Map([["a", speech("One.", { speed: 1.2 })]]), order: ["a"] };

  it("leaves the take as it is", () => {
    const after = withOps(before, [{ op: "set", line_ids: ["a"], fields: { params: { speed: 1.2, gap_s: 1 } } }]);
    assert.equal(after.lines.get("a").state, "ready");
    const faster = withOps(before, [{ op: "set", line_ids: ["a"], fields: { params: { speed: 1.3, gap_s: 1 } } }]);
    assert.equal(faster.lines.get("a").state, "stale");
  });
});
