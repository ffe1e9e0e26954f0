import assert from "node:assert/strict";
import { describe, test, type TestContext } from "node:test";
import { Client } from "pg";
import { manualClock } from "../../src/core/manual-clock.ts";
import type { Store } from "../../src/storage/store.ts";
import { createPairs, numbered, unitOf, writePair } from "../storage/pair.ts";
import { startChild } from "../support/child-process.ts";
import { backends, cleanup, openTestStore, type Backend } from "../support/open-test.ts";

type Heard = {
  readonly all: (string | null)[];
  /** Resolves once it has been heard, from now on. */
  next(channel: string | null): Promise<void>;
  stop(): void;
};

function listen(store: Store): Heard {
  const all: (string | null)[] = [];
  const waiting = new Map<string | null, PromiseWithResolvers<void>>();
  const stop = store.onWake((channel) => {
    all.push(channel);
    waiting.get(channel)?.resolve();
    waiting.delete(channel);
  });
  return {
    all,
    next(channel) {
      const waiter = Promise.withResolvers<void>();
      waiting.set(channel, waiter);
      return waiter.promise;
    },
    stop,
  };
}

/** Listens, and on PostgreSQL waits until the server knows of it: whoever begins to listen is told to look once. */
async function listenFrom(store: Store, backend: Backend): Promise<Heard> {
  const heard = listen(store);
  if (backend === "postgres") await heard.next(null);
  heard.all.length = 0;
  return heard;
}

async function connect(t: TestContext, url: string): Promise<Client> {
  const client = new Client({ connectionString: url });
  await client.connect();
  cleanup(t, () => client.end());
  return client;
}

for (const backend of backends) {
  describe(backend, () => {
    for (const by of ["user", "engine", "shared"] as const) {
      test(`the channel of ${unitOf(by)} is heard in this process before its write is answered`, async (t) => {
        const { store } = await openTestStore(t, backend);
        const heard = await listenFrom(store, backend);

        await store.write(async (tx) => tx.wake("jobs"), { by });

        assert.ok(heard.all.includes("jobs"));
      });

      test(`what ${unitOf(by)} that was undone woke is not heard`, async (t) => {
        const { store } = await openTestStore(t, backend);
        const heard = await listenFrom(store, backend);

        const undone = store.write(
          async (tx) => {
            tx.wake("never");
            throw new Error("no");
          },
          { by },
        );
        const kept = store.write(async (tx) => tx.wake("jobs"), { by });
        await Promise.allSettled([undone, kept]);

        assert.deepEqual(new Set(heard.all), new Set(["jobs"]));
      });
    }

    test("a channel that many units of a group woke is heard by everybody who listens", async (t) => {
      const { store } = await openTestStore(t, backend);
      const [first, second] = [await listenFrom(store, backend), listen(store)];

      await Promise.all(
        numbered(50).map((id) => store.write(async (tx) => tx.wake(Number(id) % 2 === 0 ? "even" : "odd"))),
      );

      for (const heard of [first, second]) assert.deepEqual(new Set(heard.all), new Set(["even", "odd"]));
    });

    test("who has stopped listening hears nothing more", async (t) => {
      const { store } = await openTestStore(t, backend);
      const heard = await listenFrom(store, backend);

      heard.stop();
      await store.write(async (tx) => tx.wake("jobs"));

      assert.deepEqual(heard.all, []);
    });

    test("the commit of another process is heard", async (t) => {
      const { store, url } = await openTestStore(t, backend);
      await createPairs(store);
      const child = startChild(t, "write", [url]);
      await child.said("open");
      const heard = await listenFrom(store, backend);

      // SQLite tells that the file has changed; PostgreSQL carries the channel's name.
      for (const id of ["a", "b"]) {
        const next = heard.next(backend === "sqlite" ? null : id);
        child.tell(id);
        await next;
      }

      assert.ok(heard.all.length >= 2);
    });

    test("our own commits do not sound like another process's", async (t) => {
      const clock = manualClock();
      const { store } = await openTestStore(t, backend, { clock });
      await createPairs(store);
      const heard = await listenFrom(store, backend);

      for (const id of numbered(5)) {
        await store.write((tx) => writePair(tx, id));
        await clock.advance(1000);
      }

      assert.deepEqual(heard.all, []);
    });
  });
}

describe("sqlite", () => {
  test("a change that was missed during a transaction is heard as soon as it ends", async (t) => {
    const clock = manualClock();
    const { store, url } = await openTestStore(t, "sqlite", { clock, waitClock: clock });
    const { store: other } = await openTestStore(t, "sqlite", { url });
    await createPairs(store);
    await clock.advance(1000);
    const heard = listen(store);
    const began = Promise.withResolvers<void>();
    const gate = Promise.withResolvers<void>();

    await other.write((tx) => writePair(tx, "other"));
    const writing = store.write(
      async () => {
        began.resolve();
        await gate.promise;
      },
      { by: "user" },
    );
    await began.promise;
    await clock.advance(500);
    assert.deepEqual(heard.all, []);
    gate.resolve();
    await writing;

    assert.deepEqual(heard.all, [null]);
  });

  test("who begins to listen during a transaction is told to look once it has ended", async (t) => {
    const clock = manualClock();
    const { store } = await openTestStore(t, "sqlite", { clock });
    let heard: Heard | undefined;

    await store.write(async () => void (heard = listen(store)), { by: "user" });

    assert.deepEqual(heard?.all, [null]);
  });
});

describe("postgres", () => {
  const endListeners = `select pg_terminate_backend(pid, 5000) from pg_stat_activity
    where datname = current_database() and query like 'listen %'`;

  test("a listener whose connection was ended comes back, is told to look, and hears again", async (t) => {
    const { store, url } = await openTestStore(t, "postgres");
    const { store: other } = await openTestStore(t, "postgres", { url });
    const heard = await listenFrom(store, "postgres");
    const operator = await connect(t, url);

    const again = heard.next(null);
    const { rowCount } = await operator.query(endListeners);
    await again;
    const jobs = heard.next("jobs");
    await other.write(async (tx) => tx.wake("jobs"));
    await jobs;

    assert.equal(rowCount, 1);
  });

  test("a store that is closed while its listener comes back is closed", async (t) => {
    const clock = manualClock();
    const { store, url } = await openTestStore(t, "postgres", { clock });
    await listenFrom(store, "postgres");
    const operator = await connect(t, url);

    await operator.query(endListeners);
    await store.close();

    await assert.rejects(async () => store.write(() => 1), { code: "closed" });
  });
});
