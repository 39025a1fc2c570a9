/** The page: waits for its parts, then lets them speak to each other. */
import { Acts } from "./acts.js";
import { Arriving } from "./arriving.js";
import { CastOrder } from "./cast_order.js";
import { Clipboard } from "./clipboard.js";
import { Conflicts } from "./conflicts.js";
import { byId, whenPresent } from "./dom.js";
import { Find } from "./find.js";
import * as keys from "./keys.js";
import { LinePanel } from "./line_panel.js";
import { HintMarks } from "./hint_marks.js";
import { Hints } from "./hints.js";
import { Lifted } from "./lifted.js";
import { Lines } from "./lines.js";
import { keepLook, keepView } from "./look.js";
import { Marks } from "./marks.js";
import { ModelPanel } from "./model.js";
import { Peaks } from "./peaks.js";
import { Place } from "./place.js";
import { Player } from "./player.js";
import { Project } from "./project.js";
import { Pronouncing } from "./pronouncing.js";
import { ProjectEngine } from "./project_engine.js";
import { Projects } from "./projects.js";
import { Reading } from "./reading.js";
import { Recordings } from "./recordings.js";
import { RowsMouse } from "./rows_mouse.js";
import { RowsTouch } from "./rows_touch.js";
import { showSaved } from "./saved.js";
import { ScriptView } from "./script_view.js";
import { Selection } from "./selection.js";
import { SpeakerMenu } from "./speaker_menu.js";
import { Speakers } from "./speakers.js";
import { Takes } from "./takes.js";
import { Timeline } from "./timeline.js";
import { Transfer } from "./transfer.js";
import { Transport } from "./transport.js";
import { Typing } from "./typing.js";
import { followCast } from "./casting.js";

const PARTS = [
  "header", "views", "script", "lines", "line-panel", "cast", "library", "player", "voice-panel",
];

async function openingScript() {
  const part = byId("part-script");
  const holder = () => part.querySelector("[data-opening-script]") ?? part.closest("[data-opening-script]");
  while (!holder()) await new Promise(requestAnimationFrame);
  return holder().dataset.openingScript;
}

/** The dialog itself: its rows, and what hand and keyboard do to them. */
function buildEditor(project, show) {
  const player = new Player();
  const timeline = new Timeline();
  const lines = new Lines(project);
  const selection = new Selection(project, lines);
  const acts = new Acts(project, selection);
  const transport = new Transport(player);
  const reading = new Reading({ project, player, lines, selection, timeline, transport });
  const arriving = new Arriving({ project, selection, acts });
  const typing = new Typing({ project, lines, selection, acts, arriving });
  new Clipboard({ project, selection, acts, arriving });
  const takes = new Takes({ project, acts, player });
  const linePanel = new LinePanel({ project, selection, acts, reading, takes, show });
  const speakerMenu = new SpeakerMenu({ project, selection, acts, linePanel });
  const find = new Find({ project, lines, selection, show });
  const hints = new Hints(project);
  const hintMarks = new HintMarks({ project, hints, lines, selection, acts, show });
  const recordings = new Recordings({ project, selection });
  const pronouncing = new Pronouncing({ project, selection, acts });
  const lifted = new Lifted({ selection, acts });
  new RowsMouse({ lines, selection, acts, reading, speakerMenu, recordings, hintMarks, lifted, show });
  new RowsTouch({ lines, lifted });
  const cast = new CastOrder(project);
  const marks = new Marks({ project, hints, hintMarks, selection, cast, show });
  byId("add-line").addEventListener("click", () => acts.add());
  byId("add-pause").addEventListener("click", () => acts.addPause());
  keys.listen({ reading, acts, selection, typing, find, pronouncing, marks, cast });
  showSaved(project, acts);
  return { player, timeline, lines, selection, acts, reading, linePanel, hints, recordings, arriving, marks, cast };
}

async function open() {
  await whenPresent(PARTS);
  keepLook();
  const project = new Project();
  const conflicts = new Conflicts(project);
  const script = new ScriptView(project, {
    lead: () => show("script"),
    compare: (about) => conflicts.compare(about),
  });
  const show = keepView((view) => (view === "script" ? script.show() : script.left()));
  const editor = buildEditor(project, show);
  project.listened = () => editor.player.playing;
  const projects = new Projects(project);
  const projectEngine = new ProjectEngine(project);
  const model = new ModelPanel();
  const speakers = new Speakers();
  new Transfer({ projects, project, ...editor, speakers, show });
  window.tableread = { project, projects, ...editor };
  projects.addEventListener("opened", () => {
    editor.player.load(project.id);
    editor.timeline.use(new Peaks(project.id));
    editor.reading.show();
    script.forget();
  });
  new Place({ project, projects, ...editor });
  followCast(project, speakers, editor);
  let engine = null;
  let voices = null;
  model.addEventListener("state", ({ detail }) => {
    if (engine !== null && engine !== detail.backend.name) project.look();
    engine = detail.backend.name;
    const heard = JSON.stringify([engine, detail.speakers, detail.model.state === "loaded"]);
    if (voices !== heard) editor.hints.forget();
    voices = heard;
    speakers.follow(detail);
    projectEngine.offer(detail);
    editor.linePanel.offer(detail.backend);
    editor.linePanel.know(detail.speakers);
  });
  speakers.addEventListener("changed", () => model.refresh());
  const opening = await openingScript();
  await Promise.all([projects.start(opening), model.watch()]);
  document.body.dataset.tableread = "ready";
  performance.mark("tableread-ready");
}

open();
