/** The page's one stream: steps in order, the state as it comes, and a lost connection that is opened again. */
import assert from "node:assert/strict";
import { beforeEach, describe, it, mock } from "node:test";
import { EventStream } from "../../assets/page/document/event_stream.js";

const listeners = new Map();
const sources = [];
let answer;

globalThis.document = Object.assign(new EventTarget(), { hidden: false });
globalThis.addEventListener = (name, listener) => void listeners.set(name, listener);
globalThis.removeEventListener = (name) => void listeners.delete(name);
globalThis.fetch = async () => answer();
globalThis.EventSource = class {
  closed = false;
  constructor(url) {
    this.url = url;
    sources.push(this);
  }
  close() {
    this.closed = true;
  }
  send(body) {
    this.onmessage({ data: JSON.stringify(body) });
  }
};

const project = (seq) => () => Response.json({ seq });
const unreachable = () => Promise.reject(new TypeError("no network"));
const settle = async () => {
  for (let turn = 0; turn < 50; turn += 1) await Promise.resolve();
  await new Promise(setImmediate);
};

/** A stream from step 5 on, with the names and payloads of its events. */
function opened({ isNeeded = false } = {}) {
  const got = [];
  const stream = new EventStream("p", 5, () => isNeeded, () => false);
  for (const name of ["step", "state", "body", "lost", "gone"]) {
    stream.events.on(name, (payload) => got.push([name, payload instanceof Error ? payload.message : payload]));
  }
  return { stream, got };
}

describe("the event stream", () => {
  beforeEach(() => {
    mock.timers.reset();
    mock.timers.enable({ apis: ["setTimeout"] });
    sources.length = 0;
    document.hidden = false;
    answer = project(9);
  });

  it("leaves out the steps that are known, and takes every state", () => {
    const { stream, got } = opened();
    assert.equal(sources[0].url, "studio/projects/p/events?since=5");
    sources[0].send({ type: "state", state: { engine: 1 } });
    sources[0].send({ type: "line", seq: 5 });
    sources[0].send({ type: "line", seq: 6 });
    sources[0].send({ type: "state", state: { engine: 2 } });
    assert.deepEqual(got, [
      ["state", { engine: 1 }],
      ["step", { type: "line", seq: 6 }],
      ["state", { engine: 2 }],
    ]);
    stream.leave();
  });

  it("says once a second that the studio is out of reach, and goes on when it is back", async () => {
    const { stream, got } = opened();
    answer = unreachable;
    sources[0].onerror();
    assert.equal(sources[0].closed, true);
    for (const _ of [1, 2]) {
      mock.timers.tick(1000);
      await settle();
    }
    assert.deepEqual(got.map(([name]) => name), ["lost", "lost"]);
    assert.match(got[0][1], /Can't reach the studio/);
    answer = project(9);
    mock.timers.tick(1000);
    await settle();
    assert.deepEqual(got.at(-1), ["body", { seq: 9 }]);
    assert.equal(sources.at(-1).url, "studio/projects/p/events?since=9");
    stream.leave();
  });

  it("opens one that ends at once only after a while", async () => {
    const { stream } = opened();
    sources[0].onerror();
    await settle();
    assert.equal(sources.length, 1);
    mock.timers.tick(1000);
    await settle();
    assert.equal(sources.length, 2);
    stream.leave();
  });

  it("doesn't call a busy studio lost", async () => {
    const { stream, got } = opened();
    answer = () => new Response("{}", { status: 429, headers: { "Retry-After": "60" } });
    sources[0].onerror();
    mock.timers.tick(1000);
    await settle();
    assert.deepEqual(got, []);
    stream.leave();
  });

  it("asks at once when the browser has no network any more", async () => {
    const { stream, got } = opened();
    answer = unreachable;
    listeners.get("offline")();
    await settle();
    assert.deepEqual(got.map(([name]) => name), ["lost"]);
    stream.leave();
    assert.equal(listeners.has("offline"), false);
  });

  it("keeps no connection in a hidden tab that nobody listens to", () => {
    const { stream } = opened();
    document.hidden = true;
    document.dispatchEvent(new Event("visibilitychange"));
    assert.equal(sources[0].closed, true);
    document.hidden = false;
    document.dispatchEvent(new Event("visibilitychange"));
    assert.equal(sources.length, 2);
    stream.leave();
    assert.equal(sources[1].closed, true);
  });

  it("says that a project is gone, and asks no more", async () => {
    const { stream, got } = opened();
    answer = () => new Response("{}", { status: 404 });
    sources[0].onerror();
    mock.timers.tick(1000);
    await settle();
    mock.timers.tick(10_000);
    await settle();
    assert.deepEqual(got, [["gone", undefined]]);
    stream.leave();
  });
});
