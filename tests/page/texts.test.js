/** Texts in another language: values in its order, forms of nouns, what is missing in English. */
import assert from "node:assert/strict";
import { test } from "node:test";

globalThis.tablereadTexts = {
  language: "fr",
  texts: {
    "Delete {0} of {1}?": "De {1}, supprimer {0} ?",
    "{0} line": "{0} réplique",
    "{0} lines": "{0} répliques",
  },
};
const { t } = await import("../../assets/page/core/texts.js");
const { formatCount } = await import("../../assets/page/core/format.js");

test("a translation orders the values as it wants", () => {
  assert.equal(t`Delete ${"{1}"} of ${"Mara"}?`, "De Mara, supprimer {1} ?");
});

test("what has no translation is English", () => {
  assert.equal(t`Delete ${2}?`, "Delete 2?");
});

test("a noun has the form of the language: in French none is singular", () => {
  assert.deepEqual([0, 1, 2].map((n) => formatCount(n, "line")), ["0 réplique", "1 réplique", "2 répliques"]);
  assert.deepEqual([0, 1].map((n) => formatCount(n, "take")), ["0 take", "1 take"]);
});
