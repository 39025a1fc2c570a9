/** What the pages that only read share: the look, the studio's answers, and a stream that is opened again. */
import { t, translateServer } from "../core/texts.js";

const RETRY_MS = 2000;
/** Between two reads of the project, which a render changes all the time. */
const REST_MS = 1500;

/** @param {string} id @returns {any} */
export function byId(id) {
  return document.getElementById(id);
}

/** Clone the first element of a `<template>`. @param {string} id @returns {any} */
export function fromTemplate(id) {
  return byId(id).content.firstElementChild.cloneNode(true);
}

/** Light or dark, as the device is. */
export function followTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const show = () => document.documentElement.classList.toggle("dark", dark.matches);
  dark.addEventListener("change", show);
  show();
}

/** Ask the studio. @param {string} url @param {object} [body] of a POST @returns {Promise<any>} rejected with `status` and the studio's words */
export async function ask(url, body) {
  const how = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(url, how);
  const answer = await response.json().catch(() => ({}));
  if (response.ok) return answer;
  const error = new Error(translateServer(answer.error?.message) ?? t`The studio answered ${response.status}.`);
  throw Object.assign(error, { status: response.status });
}

/** A colour from the studio, or that of the text. @param {string | undefined} colour */
export function safeColour(colour) {
  return /^#[0-9a-f]{6}$/i.test(colour ?? "") ? colour : "currentcolor";
}

/** Says on the page what is wrong; "" when all is well. @param {string} text */
export function say(text) {
  const message = byId("message");
  message.hidden = text === "";
  if (message.textContent !== text) message.textContent = text;
}

/** Reads a project, and again whenever it changed, over lost connections too, until it can't be read any more. */
export class Following {
  #addresses;
  #show;
  #heard;
  #source = null;
  #timer = null;
  #readAt = -Infinity;
  #seq = 0;
  #isOver = false;

  /**
   * @param {{project: string, events: string}} addresses
   * @param {(body: any) => void} show called with the project @param {(heard: any) => void} [heard] where the play-head is
   * @param {(error: any) => string} [ended] the words when it can't be read any more
   */
  constructor(addresses, show, heard = () => {}, ended = (error) => error.message) {
    this.#addresses = addresses;
    this.#show = show;
    this.#heard = heard;
    this.ended = ended;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.#close() : this.again()));
    addEventListener("online", () => this.again());
    // A connection over a network that is gone says nothing for minutes.
    addEventListener("offline", () => this.#lose());
    this.again();
  }

  /** Read the project now, and go on from there. */
  async again() {
    clearTimeout(this.#timer);
    if (this.#isOver) return;
    try {
      const body = await ask(this.#addresses.project);
      this.#readAt = performance.now();
      this.#seq = body.seq;
      say("");
      this.#show(body);
      this.#open();
    } catch (error) {
      if ([401, 403, 404].includes(error.status)) return this.#end(error);
      this.#lose();
    }
  }

  #lose() {
    if (this.#isOver) return;
    this.#close();
    say(t`Connection lost. Retrying…`);
    this.#soon(RETRY_MS);
  }

  #end(error) {
    this.#isOver = true;
    this.#close();
    document.body.dataset.over = "true";
    say(this.ended(error));
  }

  #soon(ms) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.again(), ms);
  }

  #open() {
    if (this.#source || document.hidden) return;
    const source = (this.#source = new EventSource(this.#addresses.events));
    source.onmessage = ({ data }) => {
      const news = JSON.parse(data);
      if (news.type === "heard") return this.#heard(news.heard);
      // The first says where the stream begins, which is known unless something happened meanwhile.
      if (news.seq > this.#seq) this.#soon(Math.max(0, this.#readAt + REST_MS - performance.now()));
      return undefined;
    };
    source.onerror = () => this.#lose();
  }

  #close() {
    this.#source?.close();
    this.#source = null;
  }
}
