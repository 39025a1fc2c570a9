/** The playlist: where lines lie in samples, and which sound is theirs. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { RATE_HZ } from "../../assets/page/document/document.js";
import { Playlist, isAudible, isComing, isSoundOf, soundKey } from "../../assets/page/playback/playlist.js";

const ready = (id, samples) => ({ line_id: id, kind: "speech", state: "ready", text: "x", samples, take: { take_id: `t-${id}` } });
const pause = (id, samples) => ({ line_id: id, kind: "silence", state: "ready", text: "", samples, take: null });
const missing = (id, text) => ({ line_id: id, kind: "speech", state: "none", text, samples: null, take: null });

describe("places", () => {
  const list = new Playlist([ready("a", 100), pause("b", 50), { ...missing("c", ""), state: "failed" }, ready("d", 10)]);

  it("lie back to back", () => {
    assert.deepEqual(list.starts, [0, 100, 150, 150]);
    assert.equal(list.total, 160);
    assert.equal(list.startOf("d"), 150);
    assert.equal(list.startOf("z"), 0);
    assert.equal(list.indexOf("z"), -1);
  });

  it("belong to the line that sounds there", () => {
    const at = (place) => list.lines[list.at(place)].line_id;
    assert.deepEqual([0, 99, 100, 149, 150, 159, 1e9].map(at), ["a", "a", "b", "b", "d", "d", "d"]);
  });

  it("are found by search as by counting", () => {
    const lines = Array.from({ length: 200 }, (_, n) => ready(String(n), (n * 7919) % 13));
    const many = new Playlist(lines);
    for (let place = 0; place < many.total; place += 1) {
      const index = many.at(place);
      assert.ok(many.starts[index] <= place && place < many.starts[index] + many.lengths[index], String(place));
    }
  });

  it("are none of no line", () => {
    assert.equal(new Playlist().total, 0);
    assert.equal(new Playlist().exact, true);
  });
});

describe("lengths that aren't known", () => {
  it("are guessed by the length of the text", () => {
    const list = new Playlist([missing("a", "x".repeat(150)), missing("b", "x")]);
    assert.deepEqual(list.lengths, [10 * RATE_HZ, RATE_HZ / 2]);
  });

  it("are guessed by the speed of what there is, once there is enough", () => {
    const spoken = { ...ready("a", 300 * 2000), text: "x".repeat(300) };
    assert.equal(new Playlist([spoken, missing("b", "x".repeat(100))]).lengths[1], 100 * 2000);
  });

  it("are said to be guesses while somebody makes them", () => {
    assert.equal(new Playlist([ready("a", 5)]).exact, true);
    assert.equal(new Playlist([{ ...missing("a", "x"), state: "queued" }]).exact, false);
  });
});

describe("a line's sound", () => {
  it("comes by itself or doesn't", () => {
    assert.equal(isComing(missing("a", "x")), false);
    assert.equal(isComing({ ...missing("a", "x"), state: "queued" }), true);
    assert.equal(isComing({ ...ready("a", 5), state: "stale" }), true);
    assert.equal(isAudible({ ...missing("a", "x"), state: "queued" }), false);
    assert.equal(isAudible(pause("a", 5)), false);
  });

  it("is a take, or what is being made", () => {
    assert.equal(soundKey(ready("a", 5)), "t-a");
    assert.equal(soundKey({ ...ready("a", 5), state: "generating" }), "live");
    assert.equal(soundKey(missing("a", "x")), "none");
  });

  it("is told from another one", () => {
    const making = { ...ready("a", 5), state: "generating", making: "new" };
    assert.equal(isSoundOf(null, making), true);
    assert.equal(isSoundOf("new", making), true);
    assert.equal(isSoundOf("t-a", making), false);
    assert.equal(isSoundOf("any", { ...making, making: null }), true);
    assert.equal(isSoundOf("t-a", { ...making, making: null }), false);
    assert.equal(isSoundOf("t-a", ready("a", 5)), true);
  });
});
