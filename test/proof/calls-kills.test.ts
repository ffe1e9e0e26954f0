import { describe, test } from "node:test";
import { killSenders } from "../support/call-kills.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("a hundred senders are killed: every call reaches one end, and none fails without having been sent", async (t) => {
      await killSenders(t, backend, 100);
    });
  });
}
