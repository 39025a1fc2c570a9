/** Types of the page: the records of the HTTP API, and the events. For the type checker only. */

/**
 * An element of the page's own HTML. Which one an id or a class names, the HTML says and no type does: so it has the
 * fields of every control, and what is looked up in it is of this kind, too.
 */
export interface PageElement extends Omit<HTMLElement, "querySelector" | "querySelectorAll" | "closest" | "children" | "firstElementChild" | "nextElementSibling" | "previousElementSibling" | "addEventListener"> {
  value: any;
  valueAsNumber: number;
  checked: boolean;
  disabled: boolean;
  readOnly: boolean;
  href: string;
  download: string;
  placeholder: string;
  type: string;
  validity: ValidityState;
  files: FileList;
  options: HTMLOptionsCollection;
  selectedOptions: HTMLCollectionOf<HTMLOptionElement>;
  returnValue: string;
  open: boolean;
  showModal(): void;
  close(answer?: string): void;
  select(): void;
  add(option: HTMLOptionElement): void;
  setSelectionRange(start: number, end: number): void;
  selectionStart: number;
  selectionEnd: number;
  width: number;
  height: number;
  getContext(kind: "2d"): CanvasRenderingContext2D;
  querySelector(selector: string): PageElement | null;
  querySelectorAll(selector: string): NodeListOf<PageElement>;
  closest(selector: string): PageElement | null;
  readonly children: HTMLCollectionOf<PageElement>;
  readonly firstElementChild: PageElement | null;
  readonly nextElementSibling: PageElement | null;
  readonly previousElementSibling: PageElement | null;
  addEventListener(name: string, listener: (event: any) => unknown, options?: boolean | AddEventListenerOptions): void;
}

export type LineKind = "speech" | "silence" | "audio";
/** What the text of a silence of 0 s is; it isn't spoken. */
export type Unspoken = "heading" | "note" | "action";
export type LineState = "none" | "queued" | "generating" | "ready" | "stale" | "failed";

/** One rendering of a line; stored until it is deleted. */
export interface Take {
  take_id: string;
  /** At 24,000 Hz. */
  samples: number;
  backend: string;
  seed: number | null;
  text?: string;
  params?: Params;
  locked?: boolean;
  /** Whether its speech was cut off. */
  cut?: boolean;
  /** Where it comes from if no engine spoke it. */
  source?: "recording" | "acted" | null;
  /** Whether its audio was freed; it can be rendered again. */
  gone?: boolean;
  /** Where words were said again: samples `start` to `end` are new, the others those of `take_id`. */
  patch?: { take_id: string; start: number; end: number; resumes: number } | null;
  /** Quality issues, as the studio measured them; those of words with their place in the text. */
  doubts?: { kind: string; message: string; start?: number | null; end?: number | null }[];
  /** Of its issues; the try with the lowest is used, 0 is without a fault. */
  score?: number;
  /** Which of all takes that its line ever had, from 1; only in a line's list of takes. */
  number?: number;
  /** How far it is from its voice's other takes and from its sample; only in a line's list of takes. */
  distance?: string;
  /** What a recogniser understood, or why it couldn't; null where none has listened. */
  recognised?: string | null;
}

/** A line's own settings: the engine's parameters, `mood` and `instruct`. */
export type Params = Record<string, string | number | boolean>;

/** The editable fields of a line; the others of `Line` are set by the studio. */
export interface LineFields {
  speaker?: string | null;
  text?: string;
  language?: string | null;
  seed?: number | null;
  params?: Params;
  duration_s?: number | null;
  path?: string | null;
  locked?: boolean;
  unspoken?: Unspoken | null;
}

/** A line as it is inserted. */
export interface NewLine extends LineFields {
  line_id: string;
  kind?: LineKind;
}

export interface Line extends Required<LineFields> {
  line_id: string;
  kind: LineKind;
  state: LineState;
  /** Why it failed. */
  message: string | null;
  /** The take in use. */
  take: Take | null;
  /** The take that the user chose, even if there is a newer one. */
  chosen: string | null;
  n_takes: number;
  /** Length of its current audio; null if unknown. */
  samples: number | null;
  /** The take that is being generated. */
  making?: string | null;
  /** The spoken text, if pronunciations change `text`. */
  spoken?: string | null;
}

/** A speaker of the dialog. */
export interface CastSpeaker {
  name: string;
  /** "#rrggbb" */
  colour: string;
  lines: number;
  voice: "sample" | "preset" | "described" | "built-in";
  /** What its voice is called, everywhere. */
  voice_name: string;
  /** Of its settings in `characters`. */
  key: string;
}

/** A character's settings in this project. */
export interface Character {
  /** Ids of engines' own voices by the engine's name. */
  voices: Record<string, string>;
  /** For lines without their own. */
  params: Params;
  level_db: number;
  gap_s: number | null;
  /** From -1, left, to 1, right. */
  pan: number;
}

/** A voice that a character could have. */
export interface VoiceCandidate {
  /** "automatic", "library/ID" or "engine/NAME/ID" */
  key: string;
  name: string;
  kind: "automatic" | "sample" | "described" | "preset" | "none";
  /** Whose voice it is; null for one that any engine may speak. */
  engine: string | null;
  /** Codes; empty for all that its engine speaks. */
  languages: string[];
  gender: string;
  age: string;
  tags: string[];
  /** "low" or "high", "slow" or "quick", "soft" and "bright", as it was measured. */
  sound: string[];
}

/** Every voice for a character, and the engines that speak them. */
export interface VoiceList {
  /** The project's. */
  engine: string;
  engines: { name: string; title: string; languages: string[]; to_fetch: string | null; cloning: boolean; instead_of_sample: string }[];
  voices: VoiceCandidate[];
}

export interface Pronunciation {
  written: string;
  spoken: string;
  match_case: boolean;
  enabled: boolean;
}

/** A comment on a line. */
export interface LineComment {
  comment_id: string;
  line_id: string;
  author: string;
  at_s: number;
  text: string;
  resolved: boolean;
}

export interface ProjectSettings {
  backend?: string | null;
  seed?: number | null;
  language?: string | null;
  tries?: number;
  /** Usual seconds between two lines. */
  gap_s?: number;
  /** Whether numbers, signs and abbreviations are said in words. */
  says_words?: boolean;
}

/** The fields of a project other than its lines. */
export interface ProjectMeta {
  name: string;
  order: string[];
  /** Ids of the library's voices by the speaker's name; null for the voice of that name. */
  cast: Record<string, string | null>;
  settings: ProjectSettings;
  speakers: CastSpeaker[];
  /** Takes that the user accepted in spite of their issues. */
  accepted_takes: string[];
  /** Takes with a star. */
  starred_takes: string[];
  pronunciations: Pronunciation[];
  /** The oldest first. */
  comments: LineComment[];
  /** Settings of those who have some. */
  characters: Record<string, Character>;
  can_undo: boolean;
  can_redo: boolean;
}

/** The dialog in the page; immutable, a change makes a new one that shares the rest. */
export interface DialogDocument extends ProjectMeta {
  rev: number;
  lines: Map<string, Line>;
}

export interface Notice {
  line_number: number;
  message: string;
  /** The places of the lines that it is about, among those that were read. */
  rows?: number[];
}

export interface Job {
  state: string;
  /** `remaining_s`: until it is done, when this was sent; null while too little is known. */
  summary?: { message?: string | null; remaining_s?: number | null } | null;
}

/** The last position in a project. */
export interface Position {
  line_id: string | null;
  /** The line at the play-head. */
  heard: string | null;
  by: string;
  number?: number;
}

/** A project as the studio sends it; events after `seq` change it. */
export interface ProjectBody extends Omit<ProjectMeta, "order"> {
  project_id: string;
  rev: number;
  lines: Line[];
  notices?: Notice[];
  /** How much of an imported text only a narrator would read. */
  unspoken?: number;
  /** How many quotations of a story characters say. */
  quoted?: number;
  /** Whether it was subtitles, whose times can be kept. */
  timed?: boolean;
  columns?: Columns | null;
  /** Why the project can't be saved now. */
  storage: string | null;
  job: Job | null;
  place: Position | null;
  seq: number;
}

/** What changed, by the names of `ProjectMeta`; a line that is null was deleted. */
export type Changes = Partial<ProjectMeta> & { lines?: Record<string, Partial<Line> | null> };

export type Op =
  | { op: "insert"; after: string | null; lines: NewLine[] }
  | { op: "delete"; line_ids: string[] }
  | { op: "move"; line_ids: string[]; after: string | null }
  | { op: "set"; line_ids: string[]; fields: LineFields }
  | { op: "split"; line_id: string; at: number; new_line_id: string }
  | { op: "join"; line_ids: string[] }
  | { op: "choose"; line_id: string; take_id: string }
  | { op: "delete_take"; take_id: string }
  | { op: "lock_take"; take_id: string; locked: boolean }
  | { op: "accept_take"; take_id: string; accepted: boolean }
  | { op: "star_take"; take_id: string; starred: boolean }
  | { op: "cast"; speaker: string; voice: string | null }
  | { op: "character"; speaker: string; fields: { [Name in keyof Character]?: Character[Name] | null } }
  | { op: "rename_speaker"; from: string; to: string }
  | { op: "settings"; fields: ProjectSettings }
  | { op: "pronounce"; put?: Pronunciation[]; remove?: string[] }
  | { op: "comment"; comment_id: string; line_id: string; author: string; text: string }
  | { op: "change_comment"; comment_id: string; resolved?: boolean; text?: string }
  | { op: "delete_comment"; comment_id: string }
  | { op: "rename"; name: string }
  | {
      op: "replace"; find: string; with: string;
      whole_word: boolean; match_case: boolean; line_ids: string[] | null;
    };

/** A conflict of an op with somebody else's edit: its index in the batch, the line and the field. */
export interface Conflict {
  op: number;
  line_id: string;
  field: string;
  theirs: unknown;
}

/** Edits that are sent together. */
export interface Batch {
  edit_id: string;
  client: string;
  base_rev: number;
  /** Batches of one group are joined while they wait. */
  group: string | null;
  ops: Op[];
  /** A whole script, in place of ops. */
  text?: string;
  since?: number;
  /** Whether it was sent before. */
  again?: boolean;
  /** Why it was set aside. */
  error?: { message: string; conflicts: Conflict[] };
}

export interface EditAnswer {
  rev: number;
  changes?: Changes;
  notices?: Notice[];
}

/** What a render did to a line. */
export type StepOfLine = { type?: "line"; seq?: number; line_id: string } & Partial<Line>;

/** One event of a project's stream; `{type: "state", state}` comes on it too, of the studio as a whole. */
export type StreamStep =
  | (StepOfLine & { type: "line"; seq: number })
  | ({ type: "job"; seq: number } & Job)
  | { type: "storage"; seq: number; message: string | null }
  | { type: "edit"; seq: number; rev: number; changes: Changes };

/** What the studio answered in place of a result; see `ApiError`. */
export interface Refusal extends Error {
  status?: number;
  kind?: string;
  line?: number | null;
  body?: { conflicts?: Conflict[] };
}

export interface VoiceSample {
  sample_id: string;
  mood: string | null;
  seconds: number | null;
  transcript: string | null;
  consent_at: string | null;
}

/** A recording that a sample had before, or that was removed. */
export interface SampleVersion {
  former_id: string;
  sample_id: string;
  mood: string | null;
  seconds: number | null;
  removed: boolean;
  /** Whether it is the other side of a denoised sample. */
  original: boolean;
  at: string;
}

/** A voice of the library. */
export interface Voice {
  speaker_id: string;
  name: string;
  colour: string;
  language: string | null;
  tags: string[];
  preset: string | null;
  description: string | null;
  samples: VoiceSample[];
  formers: SampleVersion[];
}

/** What the chosen engine can do with voices. */
export interface EngineOffer {
  /** Its name. */
  backend: string;
  title: string;
  languages: Record<string, string>;
  presets: { preset_id: string; label: string }[];
  /** What a speaker with a recording gets where it can't be cloned. */
  instead_of_sample: string;
  builtin_voice: boolean;
  builtin_by_name: boolean;
  cloning: boolean;
  described_voices: boolean;
  instructions: boolean;
  voice_conversion: boolean;
  /** Whether noise can be taken out of samples. */
  denoising: boolean;
}

export interface EngineParam {
  name: string;
  label: string;
  help: string;
  minimum: number;
  maximum: number;
  step: number;
  default: number;
}

export interface BackendChoice {
  name: string;
  title: string;
  /** Why it can't be chosen. */
  reason: string | null;
  /** What has to be fetched first. */
  to_fetch: string | null;
}

/** A voice engine with what its card says. */
export interface EngineCard extends BackendChoice {
  summary: string;
  code_licence: string;
  weights_licence: string;
  non_commercial: boolean;
  /** What a machine needs, in a sentence; empty for nothing. */
  needs: string;
  /** What nobody knows of it on this kind of machine, in a sentence; empty for nothing. */
  untried: string;
  /** Names, in their order. */
  languages: string[];
  language_codes: string[];
  cloning: boolean;
  described_voices: boolean;
  /** Whether a seed decides how a line sounds. */
  seeded: boolean;
  /** How many voices of its own it has. */
  presets: number;
  download_bytes: number | null;
  downloadable: boolean;
  removable: boolean;
  /** Whether it needs the programs that are installed as a second part. */
  large_packages: boolean;
  /** Seconds of speech a second, as measured here, and as they may be. */
  speed: number | null;
  expected_speed: number | null;
}

/** A model that listens with what its card says: to words, for which it is a recogniser, to voices or to noise. */
export interface RecogniserCard extends BackendChoice {
  purpose: "words" | "voices" | "noise";
  summary: string;
  code_licence: string;
  weights_licence: string;
  non_commercial: boolean;
  /** Codes of what it knows, and of what it is used for, now that it is here. */
  languages: string[];
  used_for: string[];
  download_bytes: number;
  removable: boolean;
}

/** The state of one that was used. */
export type RecogniserStatus = Pick<ModelStatus, "state" | "fraction" | "active" | "unload_in_s">;

export interface EngineDownload {
  state: "running" | "stopping" | "paused" | "failed";
  message: string;
  fraction: number | null;
  /** Whether what it brings is used at once. */
  chooses: boolean;
}

export interface SetupState {
  state: string;
  message: string;
  fraction: number | null;
  detail: string | null;
  /** Null where this start can install nothing. */
  download_bytes: number | null;
}

export interface ModelStatus {
  state: "unloaded" | "loading" | "loaded" | "unloading" | "failed";
  message: string | null;
  fraction: number | null;
  active: number;
  loads: number;
  unloads: number;
  memory_bytes: number | null;
  memory_before: MemoryUse | null;
  memory_after: MemoryUse | null;
  idle_timeout_s: number;
  eviction_enabled: boolean;
  unload_in_s: number | null;
}

export interface MemoryUse {
  resident_bytes: number;
  device_bytes: number | null;
}

/** The studio as a whole, as the header shows it. */
export interface StudioState {
  backend: BackendChoice & { params: EngineParam[]; languages: Record<string, string>; instructions: boolean; seeded: boolean };
  backends: EngineCard[];
  /** The models that listen, of each purpose the best first; none for visitors. */
  recognisers: RecogniserCard[];
  /** By name, of those that were asked for. */
  recogniser_models: Record<string, RecogniserStatus>;
  /** Downloads by the name of the engine or recogniser. */
  downloads: Record<string, EngineDownload>;
  /** Small natural voices to offer in place of the draft voice, the best fit first. */
  first_voices: string[];
  model: ModelStatus;
  engine: { in_flight: number; queued: number; max_concurrency: number; slots: number | null; usable_slots: number | null };
  setup: SetupState;
  speakers: { speaker_id: string; name: string; moods: string[] }[];
  auto_reason: string | null;
  exports: SceneExport[];
  /** The proposals that wait for an answer, by project. */
  proposals: Record<string, string>;
}

/** Edits that a program proposes; `line_id` of a new line is the one before it. */
export interface Proposal {
  proposal_id: string;
  state: "waiting" | "accepted" | "rejected" | "replaced" | "expired";
  note: string;
  changes: ProposedChange[];
}

export interface ProposedChange {
  line_id: string | null;
  before: { speaker: string; text: string } | null;
  after: { speaker: string; text: string } | null;
}

/** A file of the scene's sound that the studio makes or has made. */
export interface SceneExport {
  export_id: string;
  state: "running" | "done" | "failed" | "cancelled";
  /** 0 to 1. */
  share: number;
  message: string | null;
  measured: { loudness_lufs: number | null; true_peak_db: number; remarks: string[] } | null;
}

/** Lines that are others now; whether their order is; whether anything of `ProjectMeta` is. */
export interface ProjectChange {
  ids: Set<string>;
  order: boolean;
  meta: boolean;
}

/** Events of the page as a whole: `bus`. */
export interface PageEvents {
  /** Half-typed text is to be put now: the edits are about to be sent, or the page goes away. */
  "project.flushing": void;
  /** Another project is about to take the place of this one. */
  "project.closing": void;
  /** Its document is here; nothing is drawn of it yet. */
  "project.opened": void;
  /** It is in sight; `place` is where somebody was in it last. */
  "project.shown": { place: Position | null };
  "project.changed": ProjectChange;
  /** Follows "project.changed" where something other than the lines changed. */
  "project.meta": void;
  /** A render began or ended, or how long it still takes was estimated. */
  "project.job": void;
  /** `saving`, `trouble` or `kept` changed. */
  "project.saving": void;
  /** A batch waits in `aside` for a choice between two versions; not `isNew` once the others' state is here. */
  "project.conflict": { isNew: boolean };
  /** Somebody has chosen between two versions. */
  "project.settled": void;
  /** A batch waits in `aside` because the studio failed on it. */
  "project.failed": void;
  /** A batch was refused and dropped. */
  "project.refused": { batch: Batch; error: Refusal };
  /** A whole script was taken, or wasn't. */
  "project.script": { batch: Batch; answer?: EditAnswer; error?: Refusal };
  /** Why nothing can be kept now; null when all is well. */
  "project.storage": string | null;
  /** It was deleted elsewhere. */
  "project.gone": void;
  /** Another one was opened while edits of this one were unsent. */
  "project.left": { id: string; name: string };
  /** Lines came by one of the ways that an empty project offers. */
  "start.used": void;
  "selection.changed": void;
  /** The caret goes into a line's text, at its end where `at` is left out. */
  "text.edit": { lineId: string; at?: number };
  /** Rows are compact now, or aren't any more. */
  "density.changed": void;
  /** What is to be known about these lines is something else now. */
  "checks.changed": { ids: Set<string> };
  /** Playing, waiting or the line at the play-head changed. */
  "player.changed": void;
  "player.ended": void;
  /** The browser gives no sound output, which some say only by never answering. */
  "player.muted": void;
  /** A place in samples. */
  "timeline.seek": number;
  /** A space between two lines has been dragged or stepped to so many seconds. */
  "timeline.space": { space: { line: Line; pause: Line | null; from: number; to: number }; seconds: number; group?: string };
  "transport.generate": void;
  "transport.stop": void;
  "transport.toggle": void;
  /** Parts of the studio's state that are different now; after a connection, all of them. */
  "engine.changed": Partial<StudioState>;
  /** What voices there are, who reads, the model's state or the installation changed. */
  "engine.state": StudioState;
  /** Somebody pressed a button after which the scene is to be heard, once an engine is here. */
  "engine.wanted": void;
  /** It is here and was chosen: the scene is read with it. */
  "engine.arrived": void;
  /** Files of voices were dropped. */
  "voices.brought": File[];
  /** The studio can't be reached; the next "engine.changed" says that it can again. */
  "connection.lost": Error;
  /** The library was read. */
  "library.loaded": { speakers: Voice[]; offer: EngineOffer };
  /** It was read again: voices may be others. */
  "library.changed": void;
  /** A voice was changed from this page. */
  "library.edited": void;
  /** A voice or a sample was added, or a kept sample was edited. */
  "sample.kept": { speaker: Voice; made: "voice" | "sample" | "mended" };
  /** All lines of a name are meant. */
  "cast.marked": { name: string };
  /** A voice is to be chosen for a name. */
  "cast.voiceWanted": { name: string };
  /** The picker was closed. */
  "cast.voiceLeft": { name: string | undefined };
  /** A character's settings are to be shown. */
  "cast.settingsWanted": { name: string };
  /** Somebody wants to record or choose a sample for a name. */
  "cast.sampleWanted": { name: string };
}

export interface OutboxEvents {
  /** `state` or `trouble` changed. */
  state: void;
  taken: { batch: Batch; answer: EditAnswer };
  /** The batch is dropped. */
  refused: { batch: Batch; error: Refusal };
  /** The batch is set aside until `settle`. */
  conflict: { batch: Batch; error: Refusal };
  /** The same, of a batch on which the studio failed. */
  failed: { batch: Batch; error: Refusal };
}

export interface EventStreamEvents {
  step: StreamStep;
  /** Parts of the studio's state. */
  state: Partial<StudioState>;
  /** The studio can't be reached; it is asked again. */
  lost: Error;
  /** The project as it stands, after the connection was lost. */
  body: ProjectBody;
  /** There is no such project any more. */
  gone: void;
}

export interface ProjectListEvents {
  open: string;
  restore: string;
  delete: { id: string; name: string };
}

export interface ParamEvents {
  /** A value of null means the engine's own. */
  changed: { name: string; value: string | number | null };
  /** What was written is no value. */
  refused: void;
}

export interface PeakEvents {
  /** More of them have come. */
  loaded: void;
}

export interface SoundEvents {
  /** More of a line has arrived, or it is whole. */
  grown: void;
}

export interface PreviewEvents {
  /** Why a sound can't be played. */
  fault: Error;
}

export interface SheetEvents {
  closed: void;
}

export interface RecorderEvents {
  /** A recording begins. */
  begin: void;
  fault: Error;
  sound: { blob: Blob; name: string };
}

export interface TrimEvents {
  /** A handle moves. */
  moved: void;
  /** A handle rests. */
  changed: void;
}

export interface DetailEvents {
  /** A field was left with other words in it. */
  changed: void;
  /** All is to be kept. */
  save: void;
}

export interface SampleListEvents {
  /** Something to ask of the studio, what to say then, and where the keyboard goes. */
  request: { act: () => Promise<Voice>; said: string; focus: string | null };
  mend: VoiceSample;
}

/** A voice that can still be restored. */
export interface RemovedVoice {
  speaker_id: string;
  name: string;
  removed_s: number;
}

/** How a recording sounds, in figures. */
export interface Levels {
  speech_db: number;
  noise_db: number;
  peak_db: number;
  clipped_share: number;
  speech_share: number;
}

/** What the studio found in a recording that was sent. */
export interface UploadCheck {
  upload_id: string;
  duration_s: number;
  part_s: number;
  /** 0 to 100 */
  outline: number[];
  levels: Levels;
  before: Levels | null;
  steps: string[];
  problems: { code: string; message: string; fatal: boolean }[];
}

/** What pronunciations change, by the written word. */
export interface Reach {
  lines: Record<string, number>;
  hints: Record<string, string[]>;
  asked: string | null;
  example: [string, string] | null;
}

/** New lines, read of a file or of the clipboard. */
export interface ReadLines {
  lines: NewLine[];
  notices: Notice[];
  /** Whether it was a chat. */
  chat?: boolean;
  /** Whether it is a script as it is. */
  plain?: boolean;
  /** What the text calls itself. */
  title?: string | null;
  /** How many headings, actions and directions only a narrator would read. */
  unspoken?: number;
  /** How many quotations of a story characters say. */
  quoted?: number;
  /** Whether it was subtitles, whose times can be kept. */
  timed?: boolean;
  /** How the columns of a table were read. */
  columns?: Columns | null;
}

/** The columns of a table: their headings, what they are read as ("" for not), and the first rows. */
export interface Columns {
  headings: string[];
  roles: string[];
  rows: string[][];
}

/** How a text is read, where there is a choice. */
export interface ReadingChoice {
  /** Speaks action, headings and stage directions, and all of a story. */
  narrator?: string;
  /** Lines begin when the text says. */
  fit?: boolean;
  /** What each column of a table is read as. */
  columns?: string[];
}

/** A stage direction in a line's text; `note` says how the voice follows it, or that it doesn't. */
export interface LineDirection {
  start: number;
  end: number;
  note: string;
  /** Whether the voice follows it. */
  followed: boolean;
}

/** Text in another language than the one it is read in; of the whole scene, if of no speakers. */
export interface Misread {
  language: string;
  read_as: string;
  /** Whether the engine has its language. */
  is_known: boolean;
  speakers: string[];
}

/** A voice that a speaker could have: one of the library, or one of the engine's own. */
export interface VoiceChoice {
  label: string;
  voice?: string;
  preset?: string;
}

/** A piece of sound or silence on the audio clock, in its samples. */
export interface ScheduledSound {
  lineId: string;
  /** Where in the line it begins. */
  offset: number;
  rate: number;
  pcm: import("../playback/sound_cache.js").LinePcm | null;
  node: AudioBufferSourceNode | null;
  /** Null in a mono scene. */
  pan: number | null;
  start: number;
  end: number;
}

/** The parts that main.js hands each other. */
export interface Parts {
  project: import("../document/project.js").Project;
  projects: import("../panels/project_menu.js").ProjectMenu;
  player: import("../playback/player.js").Player;
  timeline: import("../playback/timeline.js").Timeline;
  peaks: import("../playback/peak_cache.js").PeakCache;
  transport: import("../playback/transport.js").Transport;
  playback: import("../playback/playback_controller.js").PlaybackController;
  spokenWords: import("../playback/spoken_words.js").SpokenWords;
  engineChoice: import("../panels/engine_panel.js").ProjectEngine;
  lines: import("../editor/line_list.js").LineList;
  selection: import("../editor/selection.js").Selection;
  commands: import("../editor/commands.js").Commands;
  lineImport: import("../editor/clipboard.js").LineImport;
  typing: import("../editor/text_editor.js").TextEditor;
  takes: import("../editor/takes_panel.js").TakesPanel;
  linePanel: import("../editor/line_panel.js").LinePanel;
  speakerMenu: import("../editor/speaker_menu.js").SpeakerMenu;
  find: import("../editor/find_bar.js").FindBar;
  hints: import("../editor/line_warnings.js").LineChecks;
  badges: import("../editor/line_warnings.js").WarningBadges;
  recordings: import("../editor/recordings.js").Recordings;
  pronunciations: import("../editor/pronunciation_list.js").PronunciationLinks;
  patches: import("../editor/line_patches.js").LinePatches;
  lineRecorder: import("../editor/line_recorder.js").LineRecorder;
  draggedRows: import("../editor/row_gestures.js").DraggedRows;
  gotoBar: import("../editor/goto_bar.js").GotoBar;
  cast: import("../voices/cast_panel.js").CastOrder;
  speakers: import("../voices/library_panel.js").LibraryPanel;
  /** Brings a view into sight. */
  show: (view: string) => void;
}

/** So many of so many; the rate and the ends of its interval of 95 % are of a hundred. */
export interface JudgedShare {
  hits: number;
  trials: number;
  rate: number;
  low: number;
  high: number;
}

/** How far judging is, and what the checks find in this project's takes; `judged_at` is null before the first time. */
export interface Judgement {
  state: "none" | "running" | "done" | "failed" | "cancelled";
  done: number;
  total: number;
  message: string | null;
  judged_at: string | null;
  faults: { voice: string; language: string | null; fault: string; label: string; found: JudgedShare; alarms: JudgedShare }[];
  off: { voice: string; language: string | null; check: string; message: string }[];
  too_few: { voice: string; language: string | null; takes: number }[];
}
