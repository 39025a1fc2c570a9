/** The outbox: edits go in order, one batch at a time, again after a lost connection, and none is lost. */
import assert from "node:assert/strict";
import { beforeEach, describe, it, mock } from "node:test";
import { localStore } from "../../assets/page/core/local_store.js";
import { Outbox } from "../../assets/page/document/outbox.js";

const set = (text, id = "a") => ({ op: "set", line_ids: [id], fields: { text } });
const edit = (op, more = {}) => ({ ops: [op], client: "me", base_rev: 1, ...more });
const refusal = (status, body = {}) => Object.assign(new Error(`Answer ${status}.`), { status, body });
const settle = async () => {
  for (let turn = 0; turn < 20; turn += 1) await Promise.resolve();
};

/** An outbox whose sends wait for `answer` or `refuse`. */
function opened(projectId = "p") {
  const sent = [];
  const outbox = new Outbox(projectId, (batch, last) => {
    const ends = Promise.withResolvers?.() ?? deferred();
    sent.push({ batch: structuredClone(batch), last, answer: ends.resolve, refuse: ends.reject });
    return ends.promise;
  });
  const events = [];
  for (const name of ["state", "taken", "refused", "conflict", "failed"]) {
    outbox.events.on(name, () => events.push(name === "state" ? outbox.state : name));
  }
  return { outbox, sent, events };
}

function deferred() {
  const ends = {};
  ends.promise = new Promise((resolve, reject) => Object.assign(ends, { resolve, reject }));
  return ends;
}

describe("the outbox", () => {
  beforeEach(() => {
    mock.timers.reset();
    mock.timers.enable({ apis: ["setTimeout", "Date"] });
    localStore.keys("").forEach((key) => localStore.remove(key));
  });

  it("sends one batch at a time, in order", async () => {
    const { outbox, sent, events } = opened();
    outbox.push(edit(set("One.")));
    outbox.push(edit(set("Two.", "b")));
    mock.timers.tick(0);
    await settle();
    assert.equal(sent.length, 1);
    sent[0].answer({ rev: 2 });
    await settle();
    assert.deepEqual(sent.map(({ batch }) => batch.ops[0].fields.text), ["One.", "Two."]);
    sent[1].answer({ rev: 3 });
    await settle();
    assert.deepEqual(events, ["saving", "taken", "taken", "saved"]);
    assert.equal(outbox.unsent, 0);
  });

  it("joins what is typed in one field until it is sent", async () => {
    const { outbox, sent } = opened();
    for (const text of ["O", "On", "One"]) outbox.push(edit(set(text), { group: "text:a" }));
    assert.deepEqual(outbox.ops, [set("One")]);
    mock.timers.tick(300);
    await settle();
    outbox.push(edit(set("One."), { group: "text:a" }));
    assert.equal(outbox.unsent, 2);
    assert.deepEqual(sent[0].batch.ops, [set("One")]);
  });

  it("waits no longer than a person notices", async () => {
    const { outbox, sent } = opened();
    for (let at = 0; at < 12; at += 1) {
      outbox.push(edit(set(`Text ${at}`), { group: "text:a" }));
      mock.timers.tick(100);
      await settle();
    }
    assert.ok(sent.length > 0);
  });

  it("keeps edits over a lost connection and sends the same again", async () => {
    const { outbox, sent, events } = opened();
    outbox.push(edit(set("One.")));
    mock.timers.tick(0);
    await settle();
    sent[0].refuse(refusal(0));
    await settle();
    assert.equal(outbox.state, "offline");
    assert.equal(localStore.keys("tableread.unsent.p.").length, 1);
    mock.timers.tick(1000);
    await settle();
    assert.equal(sent[1].batch.edit_id, sent[0].batch.edit_id);
    assert.equal(sent[1].batch.again, true);
    sent[1].answer({ rev: 2 });
    await settle();
    assert.deepEqual(events, ["saving", "offline", "taken", "saved"]);
    assert.deepEqual(localStore.keys("tableread.unsent.p."), []);
  });

  it("says what the studio said while it can't take edits", async () => {
    const { outbox, sent } = opened();
    outbox.push(edit(set("One.")));
    mock.timers.tick(0);
    await settle();
    sent[0].refuse(refusal(507));
    await settle();
    assert.equal(outbox.trouble.message, "Answer 507.");
    mock.timers.tick(1000);
    await settle();
    assert.equal(sent.length, 1);
    mock.timers.tick(4000);
    await settle();
    assert.equal(sent.length, 2);
  });

  it("drops what is wrong in its form, and goes on", async () => {
    const { outbox, sent, events } = opened();
    outbox.push(edit(set("One.")));
    outbox.push(edit(set("Two.", "b")));
    mock.timers.tick(0);
    await settle();
    sent[0].refuse(refusal(422));
    await settle();
    assert.equal(sent[1].batch.ops[0].fields.text, "Two.");
    assert.ok(events.includes("refused"));
    assert.deepEqual(outbox.aside, []);
  });

  it("sets a conflict aside with what was typed on in the same field", async () => {
    const { outbox, sent, events } = opened();
    outbox.push(edit(set("Mine"), { group: "text:a" }));
    mock.timers.tick(300);
    await settle();
    outbox.push(edit(set("Mine, more"), { group: "text:a" }));
    sent[0].refuse(refusal(409, { conflicts: [{ op: 0, line_id: "a", field: "text", theirs: "Theirs" }] }));
    await settle();
    assert.ok(events.includes("conflict"));
    assert.deepEqual(outbox.aside[0].ops, [set("Mine, more")]);
    assert.equal(outbox.unsent, 0);
    outbox.settle(outbox.aside[0]);
    assert.deepEqual(outbox.aside, []);
    assert.deepEqual(localStore.keys("tableread.unsent.p."), []);
  });

  it("sets aside what the studio fails on three times", async () => {
    const { outbox, sent, events } = opened();
    outbox.push(edit(set("One.")));
    mock.timers.tick(0);
    for (let at = 0; at < 3; at += 1) {
      await settle();
      sent[at].refuse(refusal(500));
      await settle();
      mock.timers.tick(1000);
    }
    await settle();
    assert.ok(events.includes("failed"));
    assert.equal(outbox.aside.length, 1);
  });

  it("leaves the refusal of a script to its writer", async () => {
    const { outbox, sent, events } = opened();
    outbox.push({ ops: [], text: "Mara: Hello.", client: "me", base_rev: 1, group: "script" });
    assert.equal(outbox.script, "Mara: Hello.");
    mock.timers.tick(0);
    await settle();
    sent[0].refuse(refusal(409, { conflicts: [{ op: 0 }] }));
    await settle();
    assert.ok(events.includes("refused"));
    assert.deepEqual(outbox.aside, []);
  });

  it("hands what is unsent to who opens the project next", async () => {
    const { outbox, sent, events } = opened();
    outbox.push(edit(set("One.")));
    mock.timers.tick(0);
    await settle();
    outbox.close();
    const before = events.length;
    sent[0].refuse(refusal(0));
    await settle();
    assert.equal(events.length, before);
    const next = opened();
    assert.deepEqual(next.outbox.ops, [set("One.")]);
    assert.equal(next.outbox.state, "saving");
    mock.timers.tick(0);
    await settle();
    assert.equal(next.sent[0].batch.edit_id, sent[0].batch.edit_id);
  });

  it("tries to send while the page goes away", async () => {
    const { outbox, sent } = opened();
    outbox.push(edit(set("One.")));
    outbox.leave();
    await settle();
    assert.equal(sent[0].last, true);
    assert.equal(localStore.keys("tableread.unsent.p.").length, 1);
  });
});
