/**
 * The page's texts in the reader's language. The code holds them in English, which is also the key of a translation;
 * one that is missing stays English. `start.js` fetches the catalogue before any other module runs.
 */

/** @type {{language?: string, texts?: Record<string, string>}} */
const { language = "en", texts = {} } = /** @type {any} */ (globalThis).tablereadTexts ?? {};
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

/** @param {string} text @param {unknown[]} values */
function filled(text, values) {
  return text.replace(/\{(\d)\}/g, (place, idx) => (idx < values.length ? String(values[idx]) : place));
}
