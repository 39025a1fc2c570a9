/** The studio's HTTP interface; every address is relative to the page's base. */

import { NATURAL_GAP_S } from "../playback/gaps.js";
import { t, translateServer } from "./texts.js";

/** @import { Batch, EditAnswer, Judgement, Notice, ProjectBody, Pronunciation, Reach, ReadLines } from "./types" */

/** A request that the server refused, with its message for the user. */
export class ApiError extends Error {
  /** @param {string} message @param {{line?: number|null, kind?: string, status?: number, body?: object}} [about] */
  constructor(message, { line = null, kind = "Unreachable", status = 0, body = {} } = {}) {
    super(message);
    this.line = line;
    this.kind = kind;
    this.status = status;
    this.body = body;
  }
}

async function refusal(response) {
  const body = await response.json().catch(() => ({}));
  const error = body.error ?? {};
  const message = translateServer(error.message) ?? t`The studio answered ${response.status}. Try again.`;
  const about = { line: error.line, kind: error.kind, status: response.status, body };
  return new ApiError(message, about);
}

const ATTEMPTS = 5;
const LONGEST_WAIT_S = 5;

/** The wait that a busy studio asks for; null if it is too long to retry. */
function waitFor(response) {
  const seconds = Number(response.headers.get("Retry-After") ?? 1);
  return response.status === 429 && seconds <= LONGEST_WAIT_S ? 1000 * seconds : null;
}

/**
 * Send a request to the studio, and retry it while the studio is busy.
 * @param {string} path below `studio/`
 * @param {Omit<RequestInit, 'body'> & {body?: any, form?: FormData}} [how] method, `body` (a `Blob` as it is, else JSON) or `form`, signal, keepalive
 */
export async function request(path, { body, form, ...options } = {}) {
  const raw = body === undefined || body instanceof Blob;
  const headers = raw ? {} : { "Content-Type": "application/json" };
  const sent = form ?? (raw ? body : JSON.stringify(body));
  for (let tries = 1; ; tries += 1) {
    const response = await fetch(`studio/${path}`, { ...options, headers, body: sent }).catch((fault) => {
      if (fault.name === "AbortError") throw fault;
      throw new ApiError(t`Can't reach the studio. Is it still running?`);
    });
    const wait_ms = tries < ATTEMPTS && !options.keepalive ? waitFor(response) : null;
    if (response.ok) return response;
    if (wait_ms === null) throw await refusal(response);
    await new Promise((resume) => setTimeout(resume, wait_ms));
  }
}

export async function json(path, options) {
  return (await request(path, options)).json();
}

export const part = encodeURIComponent;
const query = (values) => Object.entries(values).map(([name, value]) => `${name}=${part(value)}`).join("&");

export const readState = () => json("state");
/** @param {boolean} measure how fast it speaks, for which it speaks a few lines that nobody hears */
export const loadModel = (measure) => json(`model/load?measure=${measure}`, { method: "POST" });
export const cancelLoad = () => json("model/cancel", { method: "POST" });
/** @param {string} name of the backend that speaks from now on */
export const chooseBackend = (name) => json("backend", { method: "POST", body: { name } });
export const unloadModel = () => json("model/unload", { method: "POST" });
/** @param {number} segments at once, on engines without slots of their own */
export const setConcurrency = (segments) =>
  json("model/concurrency", { method: "POST", body: { segments } });
export const setTimeoutSeconds = (seconds) =>
  json("model/timeout", { method: "POST", body: { seconds } });
export const startSetup = () => request("setup/start", { method: "POST" });
export const stopSetup = () => request("setup/stop", { method: "POST" });
const enginePath = (name, rest) => `engines/${part(name)}/${rest}`;
/** @param {string} name of a voice engine or recogniser @param {boolean} [choose] whether it speaks once it is here */
export const downloadEngine = (name, choose = false) =>
  request(enginePath(name, "download"), { method: "POST", body: { choose } });
export const pauseDownload = (name) => request(enginePath(name, "pause"), { method: "POST" });
export const cancelDownload = (name) => request(enginePath(name, "cancel"), { method: "POST" });
export const removeEngine = (name) => request(enginePath(name, "weights"), { method: "DELETE" });
export const listVoiceFiles = () => json("voice-files");
/** Add a voice. @param {File[]} files @param {(share: number) => void} tell how much is sent @param {AbortSignal} signal @returns {Promise<string[]>} its presets */
export function addVoiceFiles(files, tell, signal) {
  const form = new FormData();
  for (const file of files) form.append("files", file);
  const sending = new XMLHttpRequest(); // as `fetch` can't tell how much is sent
  signal.addEventListener("abort", () => sending.abort());
  sending.upload.onprogress = ({ loaded, total }) => tell(loaded / total);
  return new Promise((resolve, reject) => {
    const answer = () => new Response(sending.response, { status: sending.status });
    sending.onload = async () => (sending.status < 300 ? resolve(await answer().json()) : reject(await refusal(answer())));
    sending.onerror = () => reject(new ApiError(t`Can't reach the studio. Is it still running?`));
    sending.onabort = () => reject(signal.reason);
    sending.open("POST", "studio/voice-files");
    sending.send(form);
  });
}
/** A sentence of a project by another engine. @param {{engine: string, speaker: string, text: string}} body @param {AbortSignal} signal @returns {Promise<Blob>} */
export const tryEngine = async (id, body, signal) =>
  (await request(`projects/${part(id)}/try`, { method: "POST", body, signal })).blob();

/** Every voice that a character could have. @returns {Promise<import("./types").VoiceList>} */
export const listVoices = (id, speaker) => json(`projects/${part(id)}/voices?speaker=${part(speaker)}`);
/** A line of a character by another voice. @param {object} body {speaker, voice, text, language} @param {AbortSignal} signal @returns {Promise<Blob>} */
export const audition = async (id, body, signal) =>
  (await request(`projects/${part(id)}/audition`, { method: "POST", body, signal })).blob();

const projectPath = (id, rest = "") => `projects/${part(id)}${rest}`;
const post = (path, body) => json(path, { method: "POST", body });

export const listProjects = () => json("projects");
/** @param {{name?: string, text?: string, like?: string}} body */
export const createProject = (body) => post("projects", { gap_s: NATURAL_GAP_S, ...body });
export const readProject = (id) => json(projectPath(id));
export const renameProject = (id, name) => request(projectPath(id), { method: "PATCH", body: { name } });
export const removeProject = (id) => request(projectPath(id), { method: "DELETE" });

/** @param {File} file a project, or a script in any format @returns {Promise<ProjectBody>} its body */
export const importProject = (file) =>
  json(`projects/import?name=${part(file.name)}&gap_s=${NATURAL_GAP_S}`, { method: "POST", body: file });

/**
 * Read new lines from a file or, without a name, from pasted text; no project changes.
 * @param {Blob} body @param {string} name of the file
 * @param {import("./types").ReadingChoice} choice a narrator speaks action, headings and stage directions; "" leaves them out
 * @returns {Promise<ReadLines>}
 */
export function readLines(body, name = "", { narrator = "", fit = false, columns = [] } = {}) {
  const roles = columns.map((role) => `&columns=${part(role)}`).join("");
  return json(`projects/lines?name=${part(name)}&narrator=${part(narrator)}&fit=${fit}${roles}`, { method: "POST", body });
}

/** @param {object} place {line_id, heard, by}, `heard` the line at the play-head @param {boolean} last the page goes away @returns {Promise<{number: number}>} */
export const savePosition = (id, place, last = false) =>
  json(projectPath(id, "/place"), { method: "PUT", body: place, keepalive: last });

export const readScript = (id) => json(projectPath(id, "/script"));
/** @param {Partial<Batch>} body {edit_id, base_rev, client, text} @param {boolean} last the page goes away */
export const putScript = (id, body, last = false) =>
  json(projectPath(id, "/script"), { method: "PUT", body, keepalive: last });
/** @param {Partial<Batch>} body {edit_id, base_rev, client, group, ops} @param {boolean} last the page goes away */
export const sendEdit = (id, body, last = false) =>
  json(projectPath(id, "/edits"), { method: "POST", body, keepalive: last });
/** A function that sends batches of one project, even when another one is open by then. @returns {(batch: Batch, last: boolean) => Promise<EditAnswer>} */
export function batchSender(id) {
  return ({ edit_id, client, base_rev, group, ops, text }, last) => {
    const about = { edit_id, client, base_rev };
    if (text !== undefined) return putScript(id, { ...about, text }, last);
    return sendEdit(id, { ...about, group, ops }, last);
  };
}

/** The latest edits that a program proposes for a project. @returns {Promise<import("./types").Proposal>} */
export const readProposal = (id) => json(projectPath(id, "/proposal"));
/** @param {object} body {base_rev, client} */
export const acceptProposal = (id, proposalId, body) => post(projectPath(id, `/proposal/${part(proposalId)}/accept`), body);
export const rejectProposal = (id, proposalId) =>
  request(projectPath(id, `/proposal/${part(proposalId)}/reject`), { method: "POST" });
/** The text of an example. @param {string} name @returns {Promise<Blob>} */
export const readExample = async (name) => (await request(`assets/dialogs/${part(name)}.txt`)).blob();

export const undo = (id, body) => post(projectPath(id, "/undo"), body);
export const redo = (id, body) => post(projectPath(id, "/redo"), body);
/** @param {object} body {line_ids, again, listen_from} */
export const startRender = (id, body) => post(projectPath(id, "/render"), body);
/** Say words of a line again. @param {object} body {start, end, edit_id, base_rev, client} @param {AbortSignal} signal */
export const patchLine = (id, lineId, body, signal) =>
  json(projectPath(id, `/lines/${part(lineId)}/patch`), { method: "POST", body, signal });
/** Make a take of a recording. @param {Blob} recording @param {Record<string, unknown>} about {acted, edit_id, base_rev, client} @param {AbortSignal} signal */
export const recordLine = (id, lineId, recording, about, signal) =>
  json(projectPath(id, `/lines/${part(lineId)}/recording?${query(about)}`), { method: "POST", body: recording, signal });
/** Cancel a take that is being made: there is none then, whatever had become of it. @param {Record<string, unknown>} about {edit_id, base_rev, client} */
export const withdrawTake = (id, about) =>
  request(projectPath(id, `/pending-take?${query(about)}`), { method: "DELETE" });
/** Where the play-head is, for table reads. @param {{line_id: string | null, playing: boolean}} heard */
export const movePlayHead = (id, heard) => request(projectPath(id, "/heard"), { method: "PUT", body: heard });
/** @returns {Promise<{review_id: string, made_at_s: number, used_at_s: number | null}[]>} */
export const listReviews = (id) => json(projectPath(id, "/reviews"));
/** @returns {Promise<{review_id: string, path: string, public_url: string | null}>} */
export const makeReview = (id) => json(projectPath(id, "/reviews"), { method: "POST" });
export const endReview = (id, reviewId) => request(projectPath(id, `/reviews/${part(reviewId)}`), { method: "DELETE" });
export const cancelRender = (id) => json(projectPath(id, "/cancel"), { method: "POST" });
export const focusLine = (id, lineId) =>
  request(projectPath(id, "/focus"), { method: "POST", body: { line_id: lineId } });

/** List the deleted projects, as `list` does the others; `edited_at` is the time of deletion. */
export const listRemovedProjects = () => json("space/trash");
/** @returns {Promise<ProjectBody>} the body of the restored project */
export const restoreProject = (id) => json(`space/trash/${part(id)}/restore`, { method: "POST" });

/** The disk space of deleted takes and projects: {bytes, takes: {files, bytes}, recordings: {files, bytes}, trash: {projects, bytes}, projects}. */
export const readDiskUsage = () => json("space");
/** Free all of it; returns the same for what was freed, and `left` [{project_id, message}]. */
export const freeSpace = () => post("space/free", {});

/** Warnings about lines before they are rendered. @param {string[] | null} lineIds null for all */
export const checkLines = (id, lineIds) => post(projectPath(id, "/hints"), { line_ids: lineIds });

/** @param {File} file a recording that audio lines play @returns {Promise<{path: string}>} */
export async function addAudio(id, file) {
  const form = new FormData();
  form.append("file", file);
  return json(projectPath(id, "/audio"), { method: "POST", form });
}

/** A file of the project, and a sentence about what its format leaves out. @returns {Promise<{blob: Blob, leftOut: string}>} */
export async function exportScript(id, format) {
  const response = await request(projectPath(id, `/export?format=${part(format)}`));
  const leftOut = translateServer(decodeURIComponent(response.headers.get("X-Left-Out") ?? ""));
  return { blob: await response.blob(), leftOut };
}

/** How far judging the checks is, and what was judged. @returns {Promise<Judgement>} */
export const readJudgement = (id) => json(projectPath(id, "/judgement"));
/** @returns {Promise<Judgement>} */
export const startJudging = (id) => json(projectPath(id, "/judgement"), { method: "POST" });
export const stopJudging = (id) => request(projectPath(id, "/judgement"), { method: "DELETE" });

export const listTakes = (id, lineId) => json(projectPath(id, `/takes/${part(lineId)}`));
export const readPeaks = (id, bins, takeIds) =>
  json(projectPath(id, `/peaks?bins=${bins}&takes=${takeIds.map(part).join(",")}`));

/** When each word of a take is said. @returns {Promise<{text: string, words: [number, number, number, number][]}>} */
export const readWords = (id, lineId, takeId) =>
  json(projectPath(id, `/takes/${part(lineId)}/${part(takeId)}/words`));

/** Raw 16-bit samples of a line, streamed while they are generated. */
export const streamLineAudio = (id, lineId, signal) =>
  request(projectPath(id, `/lines/${part(lineId)}/audio`), { signal });

export const takeUrl = (id, lineId, takeId) =>
  `studio/${projectPath(id, `/takes/${part(lineId)}/${part(takeId)}/audio.wav`)}`;
export const exportUrl = (id, format) => `studio/${projectPath(id, `/export?format=${part(format)}`)}`;
/** Start an export of the audio: {export_id, state, share, message, measured}. @param {object} body {format, loudness, even_voices} */
export const startSoundExport = (id, body) => post(projectPath(id, "/exports"), body);
export const readSoundExport = (id, exportId) => json(projectPath(id, `/exports/${part(exportId)}`));
export const stopSoundExport = (id, exportId) =>
  request(projectPath(id, `/exports/${part(exportId)}`), { method: "DELETE" });
export const soundExportUrl = (id, exportId) => `studio/${projectPath(id, `/exports/${part(exportId)}/file`)}`;
/** Captions of what a finished export has. @returns {Promise<Blob>} */
export const readSoundCaptions = async (id, exportId) =>
  (await request(projectPath(id, `/exports/${part(exportId)}/captions`))).blob();
export const coverUrl = (id) => `studio/${projectPath(id, "/cover")}`;
/** @param {Blob} image */
export const putCover = (id, image) => request(projectPath(id, "/cover"), { method: "PUT", body: image });
export const removeCover = (id) => request(projectPath(id, "/cover"), { method: "DELETE" });
export const eventsUrl = (id, since) => `studio/${projectPath(id, `/events?since=${since}`)}`;

const pronunciationPath = (id, rest) => `projects/${part(id)}/pronunciations/${rest}`;

/** @param {Pronunciation | null} entry one that is about to be written @returns {Promise<Reach>} */
export const pronunciationReach = (id, entry) => json(pronunciationPath(id, "reach"), { method: "POST", body: { entry } });

/** @param {string} speaker of the cast @param {string} text @returns {Promise<Blob>} */
export const previewPronunciation = async (id, speaker, text, signal) =>
  (await request(pronunciationPath(id, "hear"), { method: "POST", body: { speaker, text }, signal })).blob();

/** @param {File} file @returns {Promise<{entries: Pronunciation[], notices: Notice[]}>} */
export const readPronunciations = (id, file) =>
  json(pronunciationPath(id, `read?name=${part(file.name.slice(0, 200))}`), { method: "POST", body: file });

/** @param {"csv" | "txt"} format */
export const pronunciationsUrl = (id, format) => `studio/${pronunciationPath(id, `file?format=${format}`)}`;

const speakerPath = (id) => `speakers/${part(id)}`;
const samplePath = (id, sampleId) => `${speakerPath(id)}/samples/${part(sampleId)}`;
const uploadPath = (id) => `uploads/${part(id)}`;

export const readLibrary = () => json("speakers");
export const addSpeaker = (body) => json("speakers", { method: "POST", body });
export const changeSpeaker = (id, body) => json(speakerPath(id), { method: "PATCH", body });
export const removeSpeaker = (id) => request(speakerPath(id), { method: "DELETE" });
export const addSample = (id, body) => json(`${speakerPath(id)}/samples`, { method: "POST", body });
export const changeSample = (id, sampleId, body) =>
  json(samplePath(id, sampleId), { method: "PATCH", body });
export const removeSample = (id, sampleId) => json(samplePath(id, sampleId), { method: "DELETE" });
export const restoreSample = (id, versionId) =>
  json(`${speakerPath(id)}/formers/${part(versionId)}/restore`, { method: "POST" });
export const forgetSample = (id, versionId) =>
  json(`${speakerPath(id)}/formers/${part(versionId)}`, { method: "DELETE" });
export const restoreSpeaker = (id) => json(`speakers/removed/${part(id)}/restore`, { method: "POST" });
export const forgetSpeaker = (id) => request(`speakers/removed/${part(id)}`, { method: "DELETE" });
/** Open a sample as an upload, to be viewed and trimmed. */
export const openSample = (id, sampleId, signal) =>
  json(`${samplePath(id, sampleId)}/open`, { method: "POST", signal });
/** @param {object} mended {upload_id, transcript, start_s, end_s, repaired} */
export const replaceRecording = (id, sampleId, mended) =>
  json(`${samplePath(id, sampleId)}/recording`, { method: "PUT", body: mended });
/** @param {Blob} file a voice that was saved as one file */
export const importVoice = (file) => json("speakers/import", { method: "POST", body: file });

/** @param {Blob} recording @param {string} name what messages call it */
export const uploadRecording = (recording, name, signal) =>
  json(`uploads?name=${part(name.slice(0, 200))}`, { method: "POST", body: recording, signal });
export const checkUpload = (id, cut) => json(`${uploadPath(id)}/check`, { method: "POST", body: cut });
/** What is said in a part of an upload. @param {object} body the part, and `language` if known @returns {Promise<{transcript: string | null, language: string | null, note: string | null}>} */
export const readUploadWords = (id, body, signal) =>
  json(`${uploadPath(id)}/words`, { method: "POST", body, signal });
export const dropUpload = (id) => request(uploadPath(id), { method: "DELETE" });

/** A sentence in a speaker's voice, as audio. */
export const previewVoice = (id, body, signal) => postForSound(`${speakerPath(id)}/preview`, body, signal);
/** A sentence in the voice of an upload, as audio. */
export const previewUpload = (id, body, signal) => postForSound(`${uploadPath(id)}/preview`, body, signal);
/** @param {Blob} recording to be said in a speaker's voice */
export const convertVoice = (id, recording, signal) => postForSound(`${speakerPath(id)}/act`, recording, signal);

export const sampleUrl = (id, sampleId) => `studio/${samplePath(id, sampleId)}.wav`;
export const sampleVersionUrl = (id, versionId) => `studio/${speakerPath(id)}/formers/${part(versionId)}.wav`;
export const voiceUrl = (id) => `studio/${speakerPath(id)}/voice`;
/** A part of an upload, fetched whole: Safari plays from a URL only if the server supports ranges. */
export const readUploadAudio = async (id, { start_s: start, end_s: end, repaired, denoised }, signal) => {
  const cut = `start_s=${start}&end_s=${end}&repaired=${repaired}&denoised=${denoised}`;
  return (await request(`${uploadPath(id)}/audio.wav?${cut}`, { signal })).blob();
};

async function postForSound(path, body, signal) {
  return (await request(path, { method: "POST", body, signal })).blob();
}
