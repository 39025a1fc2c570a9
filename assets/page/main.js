/** The page: waits for its parts, then lets them speak to each other. */
import { byId, whenPresent } from "./dom.js";
import { Editor } from "./editor.js";
import * as keys from "./keys.js";
import { Lines } from "./lines.js";
import { keepLook, keepView } from "./look.js";
import { ModelPanel } from "./model.js";
import { Player } from "./player.js";
import { Reading } from "./reading.js";
import { Speakers } from "./speakers.js";
import { Timeline } from "./timeline.js";
import { Transport } from "./transport.js";

const PARTS = ["header", "views", "script", "lines", "cast", "library", "player", "voice-panel"];

async function openingScript() {
  const part = byId("part-script");
  const holder = () => part.querySelector("[data-opening-script]") ?? part.closest("[data-opening-script]");
  while (!holder()) await new Promise(requestAnimationFrame);
  return holder().dataset.openingScript;
}

async function open() {
  await whenPresent(PARTS);
  keepLook();
  const show = keepView();
  const editor = new Editor(await openingScript());
  const player = new Player();
  const speakers = new Speakers();
  const model = new ModelPanel();
  const reading = new Reading({
    editor,
    player,
    lines: new Lines(),
    timeline: new Timeline(),
    transport: new Transport(player),
    speakers,
    show,
  });
  window.tableread = { player, reading };

  editor.addEventListener("parsed", ({ detail }) => speakers.showCast(detail.speakers));
  model.addEventListener("state", ({ detail }) => speakers.follow(detail));
  speakers.addEventListener("changed", () => Promise.all([model.refresh(), editor.parse()]));
  keys.listen({
    read: () => reading.read(),
    toggle: () => reading.toggle(),
    step: (by) => reading.step(by),
  });
  await Promise.all([editor.parse(), model.watch()]);
  await reading.reattach();
  document.body.dataset.tableread = "ready";
}

open();
