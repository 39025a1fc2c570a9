/** The document's reducers: what a body, a change, a render's steps and edits make of it. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import {
  EMPTY_DOCUMENT, RATE_HZ, documentOf, isMissing, isPending, lineIssues, lineWordMarks, newId, withChanges, withOps, withSteps,
} from "../../assets/page/document/document.js";

const line = (id, more = {}) => ({
  line_id: id, kind: "speech", speaker: "Mara", text: `Text of ${id}.`, language: null, seed: null, params: {},
  duration_s: null, path: null, locked: false, state: "none", message: null, take: null, chosen: null, n_takes: 0,
  samples: null, ...more,
});
const meta = {
  name: "Scene", cast: {}, settings: {}, speakers: [{ name: "Mara", colour: "#000000", lines: 3, voice: "built-in" }],
  accepted_takes: [], starred_takes: [], pronunciations: [], comments: [], characters: {}, can_undo: false, can_redo: false,
};
const body = (lines, more = {}) => ({ ...meta, rev: 1, lines, ...more });
const scene = () => documentOf(body([line("a"), line("b"), line("c")]));

describe("a body", () => {
  it("becomes lines in their order", () => {
    const document = scene();
    assert.deepEqual(document.order, ["a", "b", "c"]);
    assert.equal(document.lines.get("b").text, "Text of b.");
    assert.equal(document.name, "Scene");
  });

  it("keeps the identity of what stayed", () => {
    const before = scene();
    const after = documentOf(body([line("a"), line("b", { text: "Other." }), line("c")], { rev: 2 }), before);
    assert.equal(after.lines.get("a"), before.lines.get("a"));
    assert.notEqual(after.lines.get("b"), before.lines.get("b"));
    for (const key of ["order", "cast", "speakers", "settings"]) assert.equal(after[key], before[key], key);
    assert.equal(after.rev, 2);
  });
});

describe("changes of the studio", () => {
  it("write lines, take them out and set the order", () => {
    const before = scene();
    const after = withChanges(before, 2, { lines: { a: null, b: { text: "Other." }, d: line("d") }, order: ["d", "b", "c"] });
    assert.deepEqual(after.order, ["d", "b", "c"]);
    assert.equal(after.lines.get("b").text, "Other.");
    assert.equal(after.lines.get("b").speaker, "Mara");
    assert.equal(before.lines.get("b").text, "Text of b.");
  });

  it("leave lines out of the order that aren't there yet", () => {
    assert.deepEqual(withChanges(scene(), 2, { order: ["a", "z", "b", "c"] }).order, ["a", "b", "c"]);
  });

  it("leave alone what they don't name", () => {
    const before = scene();
    const after = withChanges(before, 2, { name: "Other" });
    assert.equal(after.lines, before.lines);
    assert.equal(after.name, "Other");
  });
});

describe("steps of a render", () => {
  it("go onto their line and take its message away", () => {
    const before = documentOf(body([line("a", { state: "failed", message: "No." })]));
    const after = withSteps(before, [{ type: "line", seq: 7, line_id: "a", state: "ready", samples: 10 }, { line_id: "z", state: "ready" }]);
    const { state, message, samples } = after.lines.get("a");
    assert.deepEqual([state, message, samples], ["ready", null, 10]);
    assert.equal("seq" in after.lines.get("a"), false);
    assert.equal(after.lines.has("z"), false);
  });
});

const OPS = {
  insert: { op: "insert", after: "a", lines: [{ line_id: "n", speaker: "Tom", text: "New." }] },
  "insert at the beginning": { op: "insert", after: null, lines: [{ line_id: "n", kind: "silence", duration_s: 0.5 }] },
  "insert after a line that is gone": { op: "insert", after: "z", lines: [{ line_id: "n", text: "New." }] },
  delete: { op: "delete", line_ids: ["b", "z"] },
  move: { op: "move", line_ids: ["a"], after: "c" },
  set: { op: "set", line_ids: ["a", "z"], fields: { text: "Other." } },
  split: { op: "split", line_id: "a", at: 4, new_line_id: "n" },
  cast: { op: "cast", speaker: "Mara", voice: "v" },
  rename_speaker: { op: "rename_speaker", from: "Mara", to: "Ada" },
  accept_take: { op: "accept_take", take_id: "t", accepted: true },
  star_take: { op: "star_take", take_id: "t", starred: true },
  settings: { op: "settings", fields: { language: "de" } },
  pronounce: { op: "pronounce", put: [{ written: "a", spoken: "b", match_case: false, enabled: true }], remove: ["c"] },
  "an op that only the studio knows": { op: "replace", find: "a", with: "b" },
};

describe("edits of this page", () => {
  for (const [name, op] of Object.entries(OPS)) {
    it(`${name}: applied again do nothing more, and change no document`, () => {
      const before = scene();
      const frozen = structuredClone(before);
      const once = withOps(before, [op]);
      assert.deepEqual(withOps(once, [op]), once);
      assert.deepEqual(before, frozen);
    });
  }

  it("put lines where they belong", () => {
    const order = (op) => withOps(scene(), [op]).order;
    assert.deepEqual(order(OPS.insert), ["a", "n", "b", "c"]);
    assert.deepEqual(order(OPS["insert at the beginning"]), ["n", "a", "b", "c"]);
    assert.deepEqual(order(OPS["insert after a line that is gone"]), ["a", "b", "c", "n"]);
    assert.deepEqual(order(OPS.delete), ["a", "c"]);
    assert.deepEqual(order(OPS.move), ["b", "c", "a"]);
  });

  it("split and join at a space", () => {
    const split = withOps(scene(), [OPS.split]);
    assert.deepEqual([split.lines.get("a").text, split.lines.get("n").text], ["Text", "of a."]);
    const joined = withOps(split, [{ op: "join", line_ids: ["a", "n"] }]);
    assert.equal(joined.lines.get("a").text, "Text of a.");
    assert.deepEqual(joined.order, ["a", "b", "c"]);
  });

  it("give a pause its length in samples", () => {
    const document = withOps(scene(), [OPS["insert at the beginning"]]);
    assert.deepEqual([document.lines.get("n").samples, document.lines.get("n").state], [RATE_HZ / 2, "ready"]);
    const longer = withOps(document, [{ op: "set", line_ids: ["n"], fields: { duration_s: 2 } }]);
    assert.equal(longer.lines.get("n").samples, 2 * RATE_HZ);
  });

  it("outdate a line's sound only where it would sound otherwise", () => {
    const ready = documentOf(body([line("a", { state: "ready", take: { take_id: "t" }, samples: 5 })]));
    const state = (fields) => withOps(ready, [{ op: "set", line_ids: ["a"], fields }]).lines.get("a").state;
    assert.equal(state({ text: "Other." }), "stale");
    assert.equal(state({ text: "Text of a." }), "ready");
    assert.equal(state({ locked: true }), "ready");
    assert.equal(state({ params: { id: "VO_1", file: "a/b.wav", max_duration: 2, gap_s: 1 } }), "ready");
    assert.equal(state({ params: { id: "VO_1", speed: 2 } }), "stale");
    const waiting = documentOf(body([line("a", { state: "generating", making: "t" })]));
    assert.equal(withOps(waiting, [OPS.set]).lines.get("a").state, "queued");
  });

  it("are nothing when there are none", () => {
    const document = scene();
    assert.equal(withOps(document, []), document);
    assert.equal(EMPTY_DOCUMENT.order.length, 0);
  });
});

describe("a line's state", () => {
  it("says whether a render would make it", () => {
    assert.equal(isMissing(line("a")), true);
    assert.equal(isMissing(line("a", { state: "stale", locked: true, take: { take_id: "t" } })), false);
    assert.equal(isMissing(line("a", { kind: "silence" })), false);
    assert.equal(isPending(line("a", { state: "queued" })), true);
    assert.equal(isPending(line("a", { state: "ready" })), false);
  });

  it("says its take's issues until somebody accepts it", () => {
    const take = { take_id: "t", doubts: [{ kind: "long", message: "It is long." }] };
    assert.deepEqual(lineIssues(line("a", { state: "ready", take }), []), ["It is long."]);
    assert.deepEqual(lineIssues(line("a", { state: "ready", take }), ["t"]), []);
    assert.deepEqual(lineIssues(line("a", { state: "stale", take }), []), []);
  });

  it("has the places of wrong words until its take is accepted", () => {
    const missing = { kind: "missing", message: "“lamp” is missing.", start: 4, end: 8 };
    const take = { take_id: "t", doubts: [{ kind: "long", message: "It is long.", start: null, end: null }, missing] };
    assert.deepEqual(lineWordMarks(line("a", { state: "ready", take }), []), [missing]);
    assert.deepEqual(lineWordMarks(line("a", { state: "ready", take }), ["t"]), []);
    assert.deepEqual(lineWordMarks(line("a", { state: "stale", take }), []), []);
  });
});

it("ids are twelve hex digits, each another", () => {
  const ids = Array.from({ length: 100 }, newId);
  assert.equal(new Set(ids).size, 100);
  assert.ok(ids.every((id) => /^[0-9a-f]{12}$/.test(id)));
});
