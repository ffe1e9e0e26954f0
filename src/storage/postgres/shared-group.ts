// Group commit on PostgreSQL. Units that said they may share (their constraints alone keep them right) run at the same
// time in one transaction on one pipelined connection, so a hundred of them cost a few round trips and one commit.
// When any of them fails, the transaction is undone; a unit that failed runs again alone and is judged there, and the
// others run again together.
import type { Client } from "pg";
import { limits } from "../../core/limits.ts";
import { runAfterCommit } from "../unit.ts";
import { createUnderWay, turnOf, type Awaitable, type Tx, type WriteOptions } from "../store.ts";
import { createWriteTurns, type Waits } from "../write-turns.ts";
import { connectClient, control, patience, readsOnly } from "./connect.ts";
import { commit, pauseAfterLoss, runOwnTransaction, stampBeat } from "./own-transaction.ts";
import { isConnectionLost } from "./postgres-error.ts";
import type { PostgresParts } from "./postgres-store.ts";
import { PostgresTx } from "./postgres-tx.ts";

export type SharedGroups = {
  add<T>(unit: (tx: Tx) => Awaitable<T>, how: Pick<WriteOptions, "tenant" | "turn">): Promise<T>;
  /** Resolves once the units that wait or run by now have ended. */
  begunEnded(): Promise<unknown>;
  drain(): Promise<void>;
  /** Its connection keeps no process alive from here on. */
  unref(): void;
};

/** The driver has it and does not say so. */
type Unref = { unref(): void };

type Waiting = Waits & {
  readonly unit: (tx: Tx) => Awaitable<unknown>;
  readonly tenant: string;
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
};

export function createSharedGroups(parts: PostgresParts): SharedGroups {
  // A group's units are on the wire together, so how long one of them took is not known: turns alternate by number.
  const turns = createWriteTurns<Waiting>(() => 0);
  const underWay = createUnderWay();
  let arrived = 0;
  let client: Client | undefined;
  let working: Promise<void> | undefined;

  async function work(): Promise<void> {
    while (turns.size > 0) {
      await parts.clock.nextTurn();
      const group = turns.take(limits.groupUnitsMax);
      for (const { turn } of group) turns.used(turn, 1, 0);
      await runPatiently(group);
    }
    working = undefined;
  }

  async function runPatiently(group: readonly Waiting[]): Promise<void> {
    let rest = group;
    for (let attempt = 1; ; attempt++) {
      try {
        client ??= await connectClient(parts.server, readsOnly, patience);
        while (rest.length > 0) rest = await runGroup(parts, client, rest);
        return;
      } catch (error) {
        await client?.end().catch(() => undefined);
        client = undefined;
        if (!isConnectionLost(error) || attempt >= limits.conflictRetriesMax) {
          for (const waiting of rest) waiting.reject(error);
          return;
        }
        await pauseAfterLoss(parts, attempt);
      }
    }
  }

  return {
    add<T>(unit: (tx: Tx) => Awaitable<T>, how: Pick<WriteOptions, "tenant" | "turn">): Promise<T> {
      const answer = new Promise<T>((resolve, reject) => {
        turns.add({
          unit,
          tenant: how.tenant ?? "default",
          turn: turnOf(how),
          arrived: ++arrived,
          resolve: resolve as (value: unknown) => void,
          reject,
        });
        working ??= work();
      });
      return underWay.track(answer);
    },
    begunEnded: () => underWay.begunEnded(),
    unref: () => (client as Unref | undefined)?.unref(),
    async drain() {
      await working;
      await client?.end().catch(() => undefined);
    },
  };
}

/** Returns the units that are to run again together. Throws only when nothing of the group is known to be kept. */
async function runGroup(parts: PostgresParts, client: Client, group: readonly Waiting[]): Promise<readonly Waiting[]> {
  // Not awaited yet: it is on the wire before the first statement of the units.
  const begun = control(client, "begin read write", parts.server);
  begun.catch(() => undefined);
  const units = group.map((waiting) => ({
    waiting,
    tx: new PostgresTx(parts, client, waiting.tenant, { forgiving: false }),
  }));
  const outcomes = await Promise.allSettled(units.map(async ({ waiting, tx }) => waiting.unit(tx)));
  for (const { tx } of units) tx.end();

  const lost = units.find(({ tx }) => isConnectionLost(tx.doomed));
  if (lost !== undefined) throw lost.tx.doomed;
  await begun;
  // A unit that hid the failure of a statement has failed all the same: the transaction cannot be kept.
  const failed = new Set(
    units.filter(({ tx }, index) => outcomes[index]?.status === "rejected" || tx.doomed !== undefined),
  );
  if (failed.size > 0) {
    await control(client, "rollback", parts.server);
    // A failed statement makes every later one of the transaction fail too, so "failed" may name innocents; alone,
    // each is judged by itself.
    for (const { waiting } of failed) await runAlone(parts, waiting);
    return units.filter((unit) => !failed.has(unit)).map(({ waiting }) => waiting);
  }
  const channels = new Set(units.flatMap(({ tx }) => [...tx.channels]));
  await stampBeat(parts, client);
  await commit(parts, client, channels);
  units.forEach(({ waiting, tx }, index) => {
    waiting.resolve((outcomes[index] as PromiseFulfilledResult<unknown>).value);
    runAfterCommit(tx.committed);
  });
  parts.woken(channels);
  return [];
}

async function runAlone(parts: PostgresParts, waiting: Waiting): Promise<void> {
  await runOwnTransaction(parts, waiting.unit, { tenant: waiting.tenant }).then(waiting.resolve, waiting.reject);
}
