/** Every sentence of the catalogues is found for itself: no other one takes its place. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";

const folder = new URL("../../assets/page/texts/server/", import.meta.url);

for (const file of readdirSync(folder)) {
  test(file, async () => {
    const server = JSON.parse(readFileSync(new URL(file, folder), "utf8"));
    globalThis.tablereadTexts = { language: file.slice(0, 2), server };
    const { translateServer } = await import(`../../assets/page/core/texts.js?${file}`);
    const wrong = Object.entries(server).filter(([key, said]) => {
      const filled = (text) => text.replace(/\{(\d)\*?\}/g, (_, idx) => `Q${idx} “x”`);
      return translateServer(filled(key)) !== filled(said);
    });
    assert.deepEqual(wrong, []);
  });
}
