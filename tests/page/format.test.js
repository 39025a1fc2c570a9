/** Numbers as the page's language writes them. */
import assert from "node:assert/strict";
import test from "node:test";

globalThis.tablereadTexts = { language: "de", texts: {} };
const { formatBytes, formatDecimal, formatLength, formatNumber } = await import("../../assets/page/core/format.js");

test("a decimal has the language's sign", () => {
  assert.equal(formatDecimal(0.35, 2), "0,35");
  assert.equal(formatDecimal(-16.04, 1), "-16,0");
  assert.equal(formatDecimal(1234.5, 1), "1234,5");
  assert.deepEqual([1.25, 2, 1500].map(formatNumber), ["1,25", "2", "1500"]);
});

test("lengths and sizes are written so, clocks are not", () => {
  assert.equal(formatLength(3.42), "3,4 s");
  assert.equal(formatLength(64), "1:04");
  assert.equal(formatBytes(1.26e9), "1,3 GB");
});
