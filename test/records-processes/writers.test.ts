import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { appendAll, List, openClients } from "../support/record-writers.ts";
import { backends } from "../support/open-test.ts";

for (const backend of backends) {
  describe(backend, () => {
    test("of many writers that expect the same revision, head or absence, exactly one wins", async (t) => {
      const clients = await openClients(t, backend, 4);
      const [first] = clients;
      const race = async (how: object): Promise<number> => {
        const tries = clients.flatMap((book, client) =>
          [1, 2, 3].map((each) => book.records.put(List, { id: "l", items: [`${client}-${each}`] }, how)),
        );
        const outcomes = await Promise.allSettled(tries);
        const lost = outcomes.filter((each) => each.status === "rejected");
        assert.deepEqual([...new Set(lost.map((each) => (each.reason as { code: string }).code))], ["conflict"]);
        return outcomes.length - lost.length;
      };

      assert.equal(await race({ ifAbsent: true }), 1);
      assert.equal(await race({ ifRevision: 1 }), 1);
      assert.equal(await race({ ifHead: 2 }), 1);
      assert.equal(await first?.records.head(), 3);
    });

    test("writers without conditions all commit, with dense numbers, even when they share a transaction", async (t) => {
      const clients = await openClients(t, backend, 2);

      const writes = clients.flatMap((book, client) =>
        Array.from({ length: 60 }, (_, each) =>
          book.records.put(List, { id: `l-${each % 20}`, items: [`${client}-${each}`] }),
        ),
      );
      await Promise.all(writes);

      const [book] = clients;
      assert.equal(await book?.records.head(), 120);
      assert.deepEqual(await book?.doctor(), []);
      const { items } = (await book?.records.history(List, "l-3")) ?? { items: [] };
      assert.deepEqual(
        items.map(({ revision }) => revision),
        [1, 2, 3, 4, 5, 6],
      );
    });

    test("no append of eight clients is lost", async (t) => {
      const clients = await openClients(t, backend, 8);

      const made = await appendAll(clients, (appends) => appends < 60);

      assert.ok(made >= 60);
    });
  });
}
