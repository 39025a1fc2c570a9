/** What the studio says, in another language: sentences are found by their words, values stay as they are. */
import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.tablereadTexts = {
  language: "de",
  texts: {},
  server: {
    "“{0}” is missing.": "„{0}“ fehlt.",
    "{0} s for {1} words; they take usually about {2} s.": "{0} s für {1} Wörter; üblich sind etwa {2} s.",
    "Words may be missing.": "Vielleicht fehlen Wörter.",
    "{0*} It is left out.": "{0} Es wird ausgelassen.",
    "“{0}” can't be used here (1.5 + [a|b])?": "„{0}“ geht hier nicht (1.5 + [a|b]).",
    "(Also lines {0}.)": "(Auch Zeilen {0}.)",
    "The disk is full.": "Der Datenträger ist voll.",
    "Line {0}: {1*}": "Zeile {0}: {1}",
    "{0} of {1}.": "Von {1}: {0}.",
  },
};
const { translateServer } = await import("../../assets/page/core/texts.js");

test("a sentence has its values in the order of the translation", () => {
  assert.equal(translateServer("3 of 4."), "Von 4: 3.");
  assert.equal(translateServer("2.9 s for 3 words; they take usually about 1.2 s."),
    "2.9 s für 3 Wörter; üblich sind etwa 1.2 s.");
});

test("signs of patterns mean themselves, in a sentence and in a value", () => {
  assert.equal(translateServer("“$& .* {1} \\d (x)” is missing."), "„$& .* {1} \\d (x)“ fehlt.");
  assert.equal(translateServer("“a” can't be used here (1.5 + [a|b])?"), "„a“ geht hier nicht (1.5 + [a|b]).");
  assert.equal(translateServer("“a” can't be used here (1x5 + [a|b])?"), "“a” can't be used here (1x5 + [a|b])?");
});

test("a value of several lines is kept", () => {
  assert.equal(translateServer("“a\nb” is missing."), "„a\nb“ fehlt.");
});

test("what users wrote is never translated, even if it is a sentence of the studio", () => {
  assert.equal(translateServer("“The disk is full.” is missing."), "„The disk is full.“ fehlt.");
  assert.equal(translateServer("“Ha. The disk is full. Oh” is missing."), "„Ha. The disk is full. Oh“ fehlt.");
  assert.equal(translateServer("She said: The disk is full. And left."), "She said: The disk is full. And left.");
});

test("sentences that follow each other are translated one by one, or none of them", () => {
  assert.equal(translateServer("The disk is full. Words may be missing. (Also lines 3, 4.)"),
    "Der Datenträger ist voll. Vielleicht fehlen Wörter. (Auch Zeilen 3, 4.)");
  assert.equal(translateServer("The disk is full. Nobody knows this one."), "The disk is full. Nobody knows this one.");
});

test("a value that is a sentence of the studio is translated, too", () => {
  assert.equal(translateServer("Line 7: The disk is full. It is left out."), "Zeile 7: Der Datenträger ist voll. Es wird ausgelassen.");
  assert.equal(translateServer("Line 7: Something new."), "Zeile 7: Something new.");
});

test("what has no translation stays English, and nothing stays nothing", () => {
  assert.equal(translateServer("Something new."), "Something new.");
  assert.equal(translateServer(""), "");
  assert.equal(translateServer(null), null);
  assert.equal(translateServer(undefined), undefined);
});

test("a text of many sentences takes no time", () => {
  const long = "It is what it is. ".repeat(3000);
  assert.equal(translateServer(long), long);
});
