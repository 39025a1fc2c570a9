/**
 * The page's texts and the studio's in the reader's language. The code holds them in English, which is also the key of
 * a translation; one that is missing stays English. The catalogue is there before any module runs.
 */

/** @type {{language?: string, texts?: Record<string, string>, server?: Record<string, string>}} */
const { language = "en", texts = {}, server = {} } = /** @type {any} */ (globalThis).tablereadTexts ?? {};
const plurals = new Intl.PluralRules(language);
/** Attributes that people read or hear. */
const ATTRIBUTES = ["aria-label", "title", "placeholder", "alt", "data-empty"];

/** The language that the page is in, such as "de". */
export const pageLanguage = language;

/**
 * The tag of a text. With a value in it, "Delete {0}?" is looked up, whose translation may order the values otherwise.
 * @param {TemplateStringsArray} parts @param {...unknown} values @returns {string}
 */
export function t(parts, ...values) {
  const key = parts.reduce((before, part, idx) => `${before}{${idx - 1}}${part}`);
  return filled(texts[key] ?? key, values);
}

/**
 * A number with its noun in the form that the language wants, such as "1 line" and "3 lines".
 * @param {number} n @param {string} one English, for one @param {string} many English, for any other number
 * @returns {string}
 */
export function countedNoun(n, one, many) {
  const key = `{0} ${plurals.select(n) === "one" ? one : many}`;
  return filled(texts[key] ?? key, [n]);
}

/**
 * Translate what the page's HTML says, in templates too. Called before anything of the user's is in it.
 * @param {Document | DocumentFragment} root
 */
export function translateTree(root) {
  const walk = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
  for (let node = walk.nextNode(); node; node = walk.nextNode()) {
    if (node instanceof Text) node.data = translated(node.data);
    else if (node instanceof HTMLTemplateElement) translateTree(node.content);
    else translateAttributes(/** @type {Element} */ (node));
  }
}

/** @param {Element} element */
function translateAttributes(element) {
  for (const name of ATTRIBUTES) {
    const said = element.getAttribute(name);
    if (said) element.setAttribute(name, translated(said));
  }
}

/** @param {string} said in the HTML, where white space means nothing */
function translated(said) {
  const found = texts[said.trim().replace(/\s+/g, " ")];
  if (found === undefined) return said;
  return `${/^\s*/.exec(said)[0]}${found}${/\s*$/.exec(said)[0]}`;
}

const MOST_KNOWN = 2000;
const MOST_SENTENCES = 24;
const SENTENCE_END = /[.?!:)”"]/;
/** @type {Map<string, string>} */
const known = new Map();
/** @type {ReturnType<typeof compile> | null} */
let matchers = null;

/**
 * What the studio says, which is English on the wire: {0} of a key stands for a value, which is kept as it is, and {0*}
 * for one that may be a sentence of the studio, too. A message with a sentence that has no translation stays English.
 * @template {string | null | undefined} Message
 * @param {Message} message one or more sentences @returns {Message}
 */
export function translateServer(message) {
  if (!message || language === "en") return message;
  const found = known.get(message) ?? inSentences(message) ?? message;
  if (known.size >= MOST_KNOWN) known.clear();
  known.set(message, found);
  return /** @type {Message} */ (found);
}

/** The longest part that is one sentence, then the rest. @param {string} message @returns {string | null} */
function inSentences(message) {
  const whole = inOne(message);
  if (whole !== null) return whole;
  const ends = [...message.matchAll(/ /g)].map(({ index }) => index).filter((at) => SENTENCE_END.test(message[at - 1] ?? ""));
  for (const at of ends.length > MOST_SENTENCES ? [] : ends.toReversed()) {
    const first = inOne(message.slice(0, at));
    const rest = first === null ? null : inSentences(message.slice(at + 1));
    if (rest !== null) return `${first} ${rest}`;
  }
  return null;
}

/** @param {string} sentence @returns {string | null} */
function inOne(sentence) {
  matchers ??= compile();
  for (const { pattern, nested, said } of matchers) {
    const found = pattern.exec(sentence);
    if (found) return filled(said, found.slice(1).map((value, idx) => (nested[idx] ? translateServer(value) : value)));
  }
  return null;
}

/** The sentences with most words of their own first, so that a value takes as little as it can. */
function compile() {
  return Object.entries(server)
    .map(([key, said]) => {
      const parts = key.split(/\{\d\*?\}/);
      const words = parts.map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&"));
      const nested = [...key.matchAll(/\{\d(\*?)\}/g)].map(([, star]) => star !== "");
      return { pattern: new RegExp(`^${words.join("(.*?)")}$`, "s"), nested, said, size: parts.join("").length };
    })
    .toSorted((one, other) => other.size - one.size);
}

/** @param {string} text @param {unknown[]} values */
function filled(text, values) {
  return text.replace(/\{(\d)\}/g, (place, idx) => (idx < values.length ? String(values[idx]) : place));
}
