import { describe, test } from "node:test";
import { backends } from "../support/open-test.ts";
import { killSinks } from "../support/sink-kills.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("killed between a change and its publication, each comes out at least once, in order, under the same id", async (t) => {
      await killSinks(t, backend, 4);
    });
  });
}
