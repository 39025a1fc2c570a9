/** The page: waits for its parts, then joins them. */
import { readState } from "./core/api.js";
import { bus } from "./core/bus.js";
import { byId, keepDoubleClicks, whenPresent } from "./core/dom.js";
import { explainRefusedNumbers } from "./core/number_fields.js";
import { pageLanguage, translateTree } from "./core/texts.js";
import { ConflictDialog } from "./document/conflict_dialog.js";
import { Project } from "./document/project.js";
import { ScriptView } from "./document/script_view.js";
import { Clipboard, LineImport } from "./editor/clipboard.js";
import { Commands } from "./editor/commands.js";
import { keepDensity } from "./editor/density.js";
import { DirectionMarks } from "./editor/direction_marks.js";
import { FindBar } from "./editor/find_bar.js";
import { GotoBar } from "./editor/goto_bar.js";
import { LineList } from "./editor/line_list.js";
import { LinePanel } from "./editor/line_panel.js";
import { LineComments } from "./editor/line_comments.js";
import { LinePatches } from "./editor/line_patches.js";
import { LineRecorder } from "./editor/line_recorder.js";
import { LineChecks, WarningBadges } from "./editor/line_warnings.js";
import { PronunciationLinks } from "./editor/pronunciation_list.js";
import { Recordings } from "./editor/recordings.js";
import { RowBadges } from "./editor/row_badges.js";
import { RowFilter } from "./editor/row_filter.js";
import { DraggedRows, MouseGestures, TouchGestures } from "./editor/row_gestures.js";
import { RowWaves } from "./editor/row_waves.js";
import { ScenePanel } from "./editor/scene_panel.js";
import { Selection } from "./editor/selection.js";
import { listenForShortcuts } from "./editor/shortcuts.js";
import { SpeakerMenu } from "./editor/speaker_menu.js";
import { TakesPanel } from "./editor/takes_panel.js";
import { TextEditor } from "./editor/text_editor.js";
import { WordMarks } from "./editor/word_marks.js";
import { EnginePanel, ProjectEngine } from "./panels/engine_panel.js";
import { Exports } from "./panels/exports.js";
import { FileDrop } from "./panels/file_drop.js";
import { JudgePanel } from "./panels/judge_panel.js";
import { LastPosition } from "./panels/last_position.js";
import { findOpeningProject, ProjectMenu } from "./panels/project_menu.js";
import { Proposals } from "./panels/proposals.js";
import { ReviewLinks } from "./panels/review_links.js";
import { showSaveStatus } from "./panels/save_status.js";
import { StartScreen } from "./panels/start_screen.js";
import { TableRead } from "./panels/table_read.js";
import { Tour } from "./panels/tour.js";
import { keepLanguage, keepTheme, keepView } from "./panels/views.js";
import { PeakCache } from "./playback/peak_cache.js";
import { PlaybackController } from "./playback/playback_controller.js";
import { SpokenWords } from "./playback/spoken_words.js";
import { Player } from "./playback/player.js";
import { Timeline } from "./playback/timeline.js";
import { Transport } from "./playback/transport.js";
import { CastOrder, CastPanel } from "./voices/cast_panel.js";
import { CharacterPanel } from "./voices/character_panel.js";
import { LibraryPanel } from "./voices/library_panel.js";
import { VoicePicker } from "./voices/voice_picker.js";

const PARTS = [
  "header", "views", "script", "lines", "line-panel", "cast", "library", "player", "voice-panel",
];

/** The dialog itself: its rows, and what hand and keyboard do to them. */
function buildEditor({ project, player, show }) {
  const peaks = new PeakCache();
  const timeline = new Timeline(peaks);
  const lines = new LineList(project, (lineId) => badges.messagesOf(lineId));
  const selection = new Selection(project, lines);
  const commands = new Commands(project, selection);
  const transport = new Transport(player);
  const engineChoice = new ProjectEngine(project);
  const spokenWords = new SpokenWords({ project, player, lines });
  const playback = new PlaybackController({ project, player, lines, selection, timeline, transport, engineChoice, spokenWords, peaks });
  const lineImport = new LineImport({ project, selection, commands, show });
  const typing = new TextEditor({ project, lines, selection, commands, lineImport });
  new Clipboard({ project, selection, commands, lineImport });
  const takes = new TakesPanel({ project, commands, player, peaks });
  const linePanel = new LinePanel({ project, selection, commands, playback, takes, show });
  const speakerMenu = new SpeakerMenu({ project, selection, commands, linePanel });
  const find = new FindBar({ project, lines, selection, show });
  const hints = new LineChecks(project);
  new DirectionMarks({ project, hints, lines });
  new RowBadges({ project, hints, lines });
  new RowWaves({ project, lines, peaks });
  const badges = new WarningBadges({ project, hints, lines, selection, commands, show });
  new WordMarks({ project, lines });
  const recordings = new Recordings({ project, selection });
  const pronunciations = new PronunciationLinks({ project, selection, commands });
  const patches = new LinePatches({ project, selection, lines, playback });
  const lineRecorder = new LineRecorder({ project, selection, lines, player, playback });
  new LineComments({ project, selection, lines, show });
  new TableRead({ project, player });
  new ReviewLinks(project);
  const draggedRows = new DraggedRows({ selection, commands });
  new MouseGestures({ lines, selection, commands, playback, speakerMenu, recordings, badges, linePanel, draggedRows, show });
  new TouchGestures({ lines, draggedRows });
  const cast = new CastOrder(project);
  const gotoBar = new GotoBar({ project, badges, selection, cast, show, linePanel, commands });
  new RowFilter({ project, badges, selection, cast, lines });
  new ScenePanel({ project, player, hints, badges, selection });
  keepDensity();
  new CastPanel(project, cast);
  new VoicePicker(project, cast);
  new CharacterPanel(project);
  new JudgePanel(project);
  byId("add-line").addEventListener("click", () => commands.add());
  byId("add-pause").addEventListener("click", () => commands.addPause());
  byId("add-heading").addEventListener("click", () => commands.addHeading());
  listenForShortcuts({ playback, spokenWords, commands, selection, typing, find, pronunciations, gotoBar, cast, patches, takes, lineRecorder });
  showSaveStatus(project, commands);
  return { player, timeline, lines, selection, commands, playback, recordings, lineImport };
}

async function open() {
  const [opening, state] = [findOpeningProject(), readState()];
  for (const early of [opening, state]) early.catch(() => {}); // handled below, where the page can show it
  await whenPresent(PARTS);
  document.documentElement.lang = pageLanguage; // Gradio has set its own
  translateTree(document);
  keepDoubleClicks();
  explainRefusedNumbers();
  keepTheme();
  keepLanguage();
  const player = new Player();
  const project = new Project({ needsStream: () => player.playing || exports.busy });
  const conflicts = new ConflictDialog(project);
  const script = new ScriptView(project, {
    lead: () => show("script"),
    compare: (about) => conflicts.compare(about),
  });
  const show = keepView((view) => (view === "script" ? script.show() : script.left()));
  const editor = buildEditor({ project, player, show });
  const projects = new ProjectMenu(project);
  const engine = new EnginePanel(project);
  const speakers = new LibraryPanel(project);
  const exports = new Exports(project);
  new FileDrop({ projects, project, ...editor, speakers, show });
  new LastPosition({ project, ...editor });
  new StartScreen({ project, ...editor });
  new Tour(show);
  new Proposals(project);
  Object.assign(window, { tableread: { bus, project, projects, ...editor } });
  await Promise.all([projects.start(opening), engine.start(state)]);
  document.body.dataset.tableread = "ready";
  performance.mark("tableread-ready");
}

open();
