import { describe, test } from "node:test";
import { killSenders, killSinks } from "../support/call-kills.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a hundred senders are killed: every call reaches one end, and none fails without having been sent", async (t) => {
      await killSenders(t, backend, 100);
    });

    test("fifty senders of a sink are killed: each event comes at least once, in order, under the same id", async (t) => {
      await killSinks(t, backend, 50);
    });
  });
}
