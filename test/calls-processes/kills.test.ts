import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { open } from "../../src/index.ts";
import { target } from "../calls/target.ts";
import { callKillPoints, killSenders } from "../support/call-kills.ts";
import { startCallProcess } from "../support/call-process.ts";
import { backends, cleanup, bookUrl } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("answered but not recorded, a call is sent again with the same key, and both attempts are told", async (t) => {
      const server = await target(t);
      const url = await bookUrl(t, backend);
      // With a session of its own it would look for dead ones now and then, and end what the victim left before we see it.
      const book = await open(url, { attach: false, calls: { allow: ["127.0.0.1"] } });
      cleanup(t, () => book.close());

      for (const point of callKillPoints) {
        const before = server.received.length;
        const { id } = await book.calls.submit({ url: server.url });
        const victim = startCallProcess(t, { url }, { DAYBOOK_CRASH_AT: `${point}:1` });
        assert.equal(await victim.ended, "SIGKILL", point);
        const open_ = await book.calls.get(id);
        assert.deepEqual([open_.status, open_.attempts.length, open_.attempts[0]?.finishedAt], ["running", 1, null]);

        const next = startCallProcess(t, { url });
        await until("it has ended", async () => ((await book.calls.get(id)).finishedAt === null ? undefined : true));
        await next.kill();

        const call = await book.calls.get(id);
        assert.equal(call.status, "succeeded");
        assert.deepEqual(
          call.attempts.map(({ error, response }) => [error?.kind ?? null, response?.status ?? null]),
          [
            ["lost", null],
            [null, 200],
          ],
        );
        const keys = server.received.slice(before).map(({ headers }) => headers["idempotency-key"]);
        assert.deepEqual(keys, point === "calls.answered" ? [id, id] : [id]);
      }
      assert.deepEqual(await book.doctor(), []);
    });

    test("killed under load, every call that was accepted reaches one end, and none fails without having been sent", async (t) => {
      await killSenders(t, backend, 5);
    });
  });
}
