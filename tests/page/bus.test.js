/** The bus: events reach who asked for them, in order, and a listener that fails harms no other. */
import assert from "node:assert/strict";
import { describe, it, mock } from "node:test";
import { Bus } from "../../assets/page/core/bus.js";

describe("the bus", () => {
  it("delivers in the order of asking, until it is ended", () => {
    const bus = new Bus();
    const got = [];
    bus.on("event", (payload) => got.push(["first", payload]));
    const end = bus.on("event", (payload) => got.push(["second", payload]));
    bus.emit("event", 1);
    end();
    bus.emit("event", 2);
    bus.emit("other", 3);
    assert.deepEqual(got, [["first", 1], ["second", 1], ["first", 2]]);
  });

  it("leaves out who ended while it is delivered, and who came meanwhile", () => {
    const bus = new Bus();
    const got = [];
    let end = () => {};
    bus.on("event", () => {
      end();
      bus.on("event", () => got.push("late"));
    });
    end = bus.on("event", () => got.push("ended"));
    bus.emit("event");
    assert.deepEqual(got, []);
  });

  it("remembers what was emitted last", () => {
    const bus = new Bus();
    assert.equal(bus.latest("event"), undefined);
    bus.emit("event", { n: 1 });
    assert.deepEqual(bus.latest("event"), { n: 1 });
  });

  it("reports a listener that fails, and goes on", () => {
    const bus = new Bus();
    const reports = mock.method(globalThis, "queueMicrotask", () => {});
    let reached = false;
    bus.on("event", () => {
      throw new Error("No.");
    });
    bus.on("event", () => (reached = true));
    bus.emit("event");
    assert.equal(reached, true);
    assert.throws(reports.mock.calls[0].arguments[0], /No\./);
    reports.mock.restore();
  });
});
