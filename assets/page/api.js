/** The studio's HTTP interface; every address is relative to the page's base. */

/** What the server refused, in words for the person. */
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
  const message = error.message ?? `The studio answered ${response.status}. Try again.`;
  const about = { line: error.line, kind: error.kind, status: response.status, body };
  return new ApiError(message, about);
}

const TRIES = 5;
const LONGEST_WAIT_S = 5;

/** How long a studio with too much to do asks to be waited for; null when it is no matter of a moment. */
function waitFor(response) {
  const seconds = Number(response.headers.get("Retry-After") ?? 1);
  return response.status === 429 && seconds <= LONGEST_WAIT_S ? 1000 * seconds : null;
}

/** Ask the studio, and again where it is busy for a moment. @param {object} [options] method, `body` (a `Blob` as it is, else JSON) or `form`, signal, keepalive */
export async function request(path, { body, form, ...options } = {}) {
  const raw = body === undefined || body instanceof Blob;
  const headers = raw ? {} : { "Content-Type": "application/json" };
  const sent = form ?? (raw ? body : JSON.stringify(body));
  for (let tries = 1; ; tries += 1) {
    const response = await fetch(`studio/${path}`, { ...options, headers, body: sent }).catch((fault) => {
      if (fault.name === "AbortError") throw fault;
      throw new ApiError("The studio can't be reached. Is it still running?");
    });
    const wait_ms = tries < TRIES && !options.keepalive ? waitFor(response) : null;
    if (response.ok) return response;
    if (wait_ms === null) throw await refusal(response);
    await new Promise((resume) => setTimeout(resume, wait_ms));
  }
}

export async function json(path, options) {
  return (await request(path, options)).json();
}

export const part = encodeURIComponent;

export const state = () => json("state");
export const loadModel = () => json("model/load", { method: "POST" });
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

