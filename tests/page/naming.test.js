import assert from "node:assert/strict";
import { test } from "node:test";
import { namingOps } from "../../assets/page/document/naming.js";

const heading = { line_id: "a", kind: "silence", unspoken: "heading", text: " Act  One " };

test("a title comes before a heading, a heading before the file's name", () => {
  const named = (brought) => namingOps("Untitled", brought)[0]?.name;
  assert.equal(named({ title: "The Weir", lines: [heading], file: "draft.txt" }), "The Weir");
  assert.equal(named({ lines: [heading], file: "draft.txt" }), "Act One");
  assert.equal(named({ file: "the_old_weir.v2.txt" }), "the old weir.v2");
  assert.equal(named({ file: ".notes" }), ".notes");
  assert.equal(named({ title: "x".repeat(300) }).length, 100);
  assert.equal(named({ file: "Untitled.txt" }), undefined);
  assert.equal(named({}), undefined);
});

test("a name that somebody gave stays", () => {
  assert.deepEqual(namingOps("Scene", { title: "The Weir" }), []);
  assert.deepEqual(namingOps("", { title: "The Weir" }), [{ op: "rename", name: "The Weir" }]);
});
