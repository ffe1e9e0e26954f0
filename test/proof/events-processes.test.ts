// Deliveries in real processes that are really killed: the full counts of what test/events-processes tries in small.
import { describe, test } from "node:test";
import { killWhileHearing } from "../support/event-kills.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("200 kills of listeners lose none of 1,000 events, and leave none done twice", async (t) => {
      await killWhileHearing(t, backend, 200);
    });
  });
}
