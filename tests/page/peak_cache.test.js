/** Waveforms come in bundles; a take that has no sound yet is asked for again when the studio sends it anew. */
import assert from "node:assert/strict";
import { it } from "node:test";
import { PeakCache } from "../../assets/page/playback/peak_cache.js";

const WAVE = [-4, 4];

/** A cache, what it asked for, and the waveforms that there are. */
function opened() {
  const [asked, there] = [[], {}];
  globalThis.fetch = async (path) => {
    const takeIds = new URLSearchParams(path.split("?")[1]).get("takes").split(",");
    asked.push(takeIds);
    const found = takeIds.filter((takeId) => there[takeId]).map((takeId) => [takeId, there[takeId]]);
    return Response.json({ peaks: Object.fromEntries(found) });
  };
  const cache = new PeakCache();
  cache.open("project");
  const loaded = () => new Promise((done) => cache.events.on("loaded", done));
  return { cache, asked, there, loaded };
}

it("a take without sound is asked for once, and again once it comes anew", async () => {
  const { cache, asked, there, loaded } = opened();
  const [take, other] = [{ take_id: "one" }, { take_id: "two" }];
  there.two = WAVE;
  const first = loaded();
  assert.equal(cache.of(take), null);
  assert.equal(cache.of(other), null);
  await first;
  assert.deepEqual(asked, [["one", "two"]]);
  assert.deepEqual(cache.of(other), WAVE);
  assert.equal(cache.of(take), null);
  assert.ok(cache.settled(take));
  there.one = WAVE;
  const rendered = { take_id: "one" };
  assert.ok(!cache.settled(rendered));
  const second = loaded();
  assert.equal(cache.of(rendered), null);
  await second;
  assert.deepEqual(asked, [["one", "two"], ["one"]]);
  assert.deepEqual(cache.of(rendered), WAVE);
  assert.deepEqual(cache.of(take), WAVE);
});
