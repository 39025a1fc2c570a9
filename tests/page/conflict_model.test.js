/** Edit conflicts: what a person is asked, and what is left of the edits by the answers. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { conflictQuestions, resolvedOps } from "../../assets/page/document/conflict_model.js";

/** A project of lines by id, with those that somebody deleted. */
function projectOf(lines, deleted = {}) {
  return {
    line: (id) => lines[id],
    deletedLine: (id) => deleted[id],
    view: { order: Object.keys(lines), speakers: [{ name: "Mara" }] },
  };
}

const line = (id, text = `Text of ${id}.`) => ({ line_id: id, kind: "speech", speaker: "Mara", text });
const batch = (ops, conflicts) => ({ ops, error: { message: "Changed.", conflicts } });
const answered = (one, project, isMine) =>
  resolvedOps(one, new Map(conflictQuestions(one, project).map(({ key }) => [key, isMine])), project);

describe("a field that two people set", () => {
  const project = projectOf({ a: line("a", "Theirs."), b: line("b") });
  const op = { op: "set", line_ids: ["a", "b"], fields: { text: "Mine.", speaker: "Tom" } };
  const one = batch([op], [{ op: 0, line_id: "a", field: "text", theirs: "Theirs." }]);

  it("is one question with both versions", () => {
    const [question, ...others] = conflictQuestions(one, project);
    assert.deepEqual(others, []);
    assert.deepEqual([question.title, question.mine, question.theirs], ["Text", "Mine.", "Theirs."]);
  });

  it("keeps what nobody disputes whatever is answered", () => {
    assert.deepEqual(answered(one, project, false), [
      { ...op, line_ids: ["b"] },
      { op: "set", line_ids: ["a"], fields: { speaker: "Tom" } },
    ]);
    assert.deepEqual(answered(one, project, true), [{ ...op, line_ids: ["b"] }, { ...op, line_ids: ["a"] }]);
  });
});

describe("a line that somebody deleted", () => {
  const project = projectOf({ b: line("b") }, { a: { line: line("a", "As it was."), after: null } });
  const one = batch(
    [{ op: "set", line_ids: ["a"], fields: { text: "Mine." } }],
    [{ op: 0, line_id: "a", field: "text", theirs: null }],
  );

  it("is inserted again where it stood", () => {
    const [op] = answered(one, project, true);
    assert.deepEqual([op.op, op.after], ["insert", null]);
    assert.deepEqual([op.lines[0].text, op.lines[0].speaker], ["Mine.", "Mara"]);
    assert.notEqual(op.lines[0].line_id, "a");
  });

  it("stays away where theirs is kept", () => {
    assert.deepEqual(answered(one, project, false), []);
  });

  it("stands after the nearest line before it that is there", () => {
    const gone = { c: { line: line("c"), after: "a" }, a: { line: line("a"), after: "b" } };
    const far = projectOf({ b: line("b") }, gone);
    const edit = batch(
      [{ op: "set", line_ids: ["c"], fields: { text: "Mine." } }],
      [{ op: 0, line_id: "c", field: "text", theirs: null }],
    );
    assert.equal(answered(edit, far, true)[0].after, "b");
  });

  it("can't be kept where neither its text nor the line is known", () => {
    const edit = batch(
      [{ op: "set", line_ids: ["z"], fields: { locked: true } }],
      [{ op: 0, line_id: "z", field: "locked", theirs: null }],
    );
    assert.equal(conflictQuestions(edit, project)[0].keep, null);
  });
});

describe("other edits", () => {
  const project = projectOf({ a: line("a"), b: line("b"), c: line("c") });
  const conflict = (more) => [{ op: 0, line_id: "a", field: "text", theirs: "x", ...more }];

  it("a deletion spares the lines that others changed", () => {
    const one = batch([{ op: "delete", line_ids: ["a", "b"] }], conflict());
    assert.deepEqual(answered(one, project, false), [{ op: "delete", line_ids: ["b"] }]);
    assert.deepEqual(answered(one, project, true), [{ op: "delete", line_ids: ["a", "b"] }]);
  });

  it("a split is made within the text of now", () => {
    const one = batch([{ op: "split", line_id: "a", at: 99, new_line_id: "n" }], conflict());
    assert.equal(answered(one, project, true)[0].at, "Text of a.".length);
    assert.deepEqual(answered(one, project, false), []);
  });

  it("a join needs both lines", () => {
    const one = batch([{ op: "join", line_ids: ["a", "z"] }], conflict());
    assert.equal(conflictQuestions(one, project)[0].keep, null);
    assert.deepEqual(answered(one, project, true), []);
  });

  it("a move takes the lines that are there", () => {
    const one = batch([{ op: "move", line_ids: ["a", "z"], after: "c" }], conflict());
    assert.deepEqual(answered(one, project, true), [{ op: "move", line_ids: ["a"], after: "c" }]);
  });

  it("what no conflict names is made as it was meant", () => {
    const other = { op: "rename", name: "Other" };
    const one = batch([{ op: "set", line_ids: ["a"], fields: { text: "Mine." } }, other], conflict());
    assert.deepEqual(answered(one, project, false), [other]);
  });
});
