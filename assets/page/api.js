/** The studio's HTTP interface; every address is relative to the page's base. */

/** What the server refused, in words for the person. */
export class ApiError extends Error {
  /** @param {string} message @param {{line?: number|null, kind?: string, status?: number}} [about] */
  constructor(message, { line = null, kind = "Unreachable", status = 0 } = {}) {
    super(message);
    this.line = line;
    this.kind = kind;
    this.status = status;
  }
}

async function refusal(response) {
  const body = await response.json().catch(() => ({}));
  const error = body.error ?? {};
  const message = error.message ?? `The studio answered ${response.status}. Try again.`;
  return new ApiError(message, { line: error.line, kind: error.kind, status: response.status });
}

/** Ask the studio; a `Blob` goes as it is, anything else as JSON. */
export async function request(path, { method = "GET", body, signal } = {}) {
  const raw = body === undefined || body instanceof Blob;
  const response = await fetch(`studio/${path}`, {
    method,
    signal,
    headers: raw ? {} : { "Content-Type": "application/json" },
    body: raw ? body : JSON.stringify(body),
  }).catch((fault) => {
    if (fault.name === "AbortError") throw fault;
    throw new ApiError("The studio can't be reached. Is it still running?");
  });
  if (!response.ok) throw await refusal(response);
  return response;
}

export async function json(path, options) {
  return (await request(path, options)).json();
}

const part = encodeURIComponent;

export const state = () => json("state");
export const parse = (text, signal) => json("script", { method: "POST", body: { text }, signal });
/** @param {string} text @param {object} voices ids of the library's voices by name */
export const startJob = (text, voices) => json("jobs", { method: "POST", body: { text, voices } });
export const job = (id) => json(`jobs/${part(id)}`);
export const cancelJob = (id) => json(`jobs/${part(id)}/cancel`, { method: "POST" });
export const focus = (id, segmentIdx) =>
  request(`jobs/${part(id)}/focus`, { method: "POST", body: { segment_idx: segmentIdx } });
export const loadModel = () => json("model/load", { method: "POST" });
export const cancelLoad = () => json("model/cancel", { method: "POST" });
/** @param {string} name of the backend that speaks from now on */
export const chooseBackend = (name) => json("backend", { method: "POST", body: { name } });
export const unloadModel = () => json("model/unload", { method: "POST" });
export const setTimeoutSeconds = (seconds) =>
  json("model/timeout", { method: "POST", body: { seconds } });
export const startSetup = () => request("setup/start", { method: "POST" });

/** Raw 16-bit samples of a segment, streamed as they are made. */
export const segmentAudio = (id, segmentIdx, signal) =>
  request(`jobs/${part(id)}/segments/${segmentIdx}/audio`, { signal });

export const exportUrl = (id, format) => `studio/jobs/${part(id)}/export?format=${format}`;
export const eventsUrl = (id, since) => `studio/jobs/${part(id)}/events?since=${since}`;
