import { describe, test } from "node:test";
import { withNats } from "../nats/nats-server.ts";
import { backends } from "../support/open-test.ts";
import { killSinks } from "../support/sink-kills.ts";

withNats(() => undefined);

for (const backend of backends) {
  describe(backend, () => {
    test("fifty processes are killed between a change and its publication: each comes out at least once, in order, under the same id", async (t) => {
      await killSinks(t, backend, 50);
    });
  });
}
