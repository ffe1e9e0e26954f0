// A unit on a connection of its own: the engine's at READ COMMITTED, a user's at SERIALIZABLE. It is run again when it
// lost against a concurrent one or its connection broke, but never once its commit is under way: then only the server
// knows what became of it.
import type { Client, PoolClient } from "pg";
import type { Clock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import { killPoint } from "../../core/fact.ts";
import { limits } from "../../core/limits.ts";
import { jitter, type Random } from "../../core/id.ts";
import { runAfterCommit } from "../unit.ts";
import { lockKey } from "../word.ts";
import type { Awaitable, Tx, WriteOptions } from "../store.ts";
import { control, freshen } from "./connect.ts";
import type { PostgresParts } from "./postgres-store.ts";
import { isConflictingTransaction, isConnectionLost, fromPostgresError } from "./postgres-error.ts";
import { PostgresTx } from "./postgres-tx.ts";

export async function runOwnTransaction<T>(
  parts: PostgresParts,
  unit: (tx: Tx) => Awaitable<T>,
  options: WriteOptions,
): Promise<T> {
  const turn: Turn = { names: new Set(), taken: false };
  for (let attempt = 1; ; attempt++) {
    try {
      return await runOnce(parts, unit, options, turn);
    } catch (error) {
      if (!isWorthAnotherRun(error)) throw error;
      if (attempt >= limits.conflictRetriesMax && options.tryOn?.() !== true) throw error;
      if (options.by === "user" && isConflictingTransaction(error) && (turn.names.size === 0 || attempt > 1)) {
        turn.names.add(losers);
      }
      // A unit that can wait for its turn need not stay away to let the others through.
      if (attempt === 1 && turn.names.size > 0) continue;
      await pauseAfterLoss(parts, attempt);
    }
  }
}

export async function pauseAfterLoss(
  { waitClock, random }: { readonly waitClock: Clock; readonly random: Random },
  attempt: number,
): Promise<void> {
  await waitClock.sleep(jitter(random, Math.min(500, 2 ** attempt), 0.75));
}

/** What a unit competes for, once it has lost. */
type Turn = { readonly names: Set<string>; taken: boolean };

/** Users' units that lost for rows of their own, or twice, go one after the other: then each competes only with those that have not
 *  lost yet. Without it, one of twenty that wrote one row could lose ten times. */
const losers = "losers";

// Where a unit lost a moment ago, the next one would lose as well: it takes its turn the first time.
const busyMs = 1000;

function noteLoss({ busyUntil, waitClock: clock }: PostgresParts, name: string): void {
  busyUntil.set(name, clock.monotonic() + busyMs);
}

function isBusy({ busyUntil, waitClock: clock }: PostgresParts, name: string): boolean {
  const until = busyUntil.get(name);
  if (until === undefined) return false;
  if (until > clock.monotonic()) return true;
  busyUntil.delete(name);
  return false;
}

const beginUser = "begin isolation level serializable, read write";

/** The engine's statements find their rows by index whatever the values are, so planning them anew each time is time lost: it
 *  takes longer than a claim of one job. */
const beginEngine = `begin isolation level read committed, read write; set local plan_cache_mode = force_generic_plan`;

async function runOnce<T>(
  parts: PostgresParts,
  unit: (tx: Tx) => Awaitable<T>,
  { by = "engine", tenant = "default", beat = true }: WriteOptions,
  turn: Turn,
): Promise<T> {
  const client = await take(parts);
  let begun: Promise<string> | undefined;
  // Not awaited: it is on the wire before the unit's first statement, and by then the unit may have said what it competes for.
  const begin = (): Promise<string> => {
    if (begun !== undefined) return begun;
    if (tx.competesFor !== undefined && isBusy(parts, tx.competesFor)) turn.names.add(tx.competesFor);
    // All take them in one order.
    for (const name of [...turn.names].sort()) takeTurn(client, turn, name);
    begun = control(client, by === "user" ? beginUser : beginEngine, parts.server);
    begun.catch(() => undefined);
    return begun;
  };
  const beginAnew = (): Promise<unknown> => {
    const undone = control(client, "rollback", parts.server);
    begun = control(client, beginUser, parts.server);
    return Promise.allSettled([undone, begun]);
  };
  const tx: PostgresTx = new PostgresTx(parts, client, tenant, {
    forgiving: by === "user",
    begin: () => void begin(),
    ...(by === "user" && { beginAnew }),
  });
  let broken: unknown;
  try {
    const result = await unit(tx);
    await begin();
    if (tx.doomed !== undefined) throw tx.doomed;
    tx.end();
    await tx.idle();
    if (by !== "user" && beat) await stampBeat(parts, client);
    const committed = commit(parts, client, tx.channels);
    if (turn.taken) endTurn(client, turn);
    await committed;
    runAfterCommit(tx.committed);
    parts.woken(tx.channels);
    return result;
  } catch (error) {
    tx.end();
    await tx.idle();
    if (tx.competesFor !== undefined) turn.names.add(tx.competesFor);
    // The unit may have made another error of it, but only what doomed the transaction says whether to run it again.
    const cause = (await failureOf(begin())) ?? (isWorthAnotherRun(tx.doomed) ? tx.doomed : error);
    if (tx.competesFor !== undefined && isConflictingTransaction(cause)) noteLoss(parts, tx.competesFor);
    if (isConnectionLost(cause) || unknownOutcome(cause)) broken = cause;
    else await client.query("rollback").catch((failure: unknown) => (broken = failure));
    throw cause;
  } finally {
    if (turn.taken) endTurn(client, turn);
    giveBack(parts, client, { broken: broken !== undefined, leaves: tx.leaves });
  }
}

/** Others get the connection once nothing of a user's is left in it; the user has the answer already. */
export function giveBack(
  { server }: Pick<PostgresParts, "server">,
  client: PoolClient,
  { broken, leaves }: { readonly broken: boolean; readonly leaves: boolean },
): void {
  if (broken || !leaves) return client.release(broken);
  freshen(client, server).then(
    () => client.release(),
    () => client.release(true),
  );
}

// Before the transaction begins: a statement's view is older than the locks that it waits for. Not awaited, because the server
// does one after the other; a unit that waited in vain goes on without its turn and may lose again.
function takeTurn(client: PoolClient, turn: Turn, name: string): void {
  turn.taken = true;
  client.query(`select pg_catalog.pg_advisory_lock(${lockKey("$1")})`, [name]).catch(() => undefined);
}

/** Right behind the commit, so that the next one waits for nothing but that. A connection that fails here is gone, and its
 *  locks with it. */
function endTurn(client: PoolClient, turn: Turn): void {
  turn.taken = false;
  client.query("select pg_catalog.pg_advisory_unlock_all()").catch(() => undefined);
}

/** What it failed with, once it is known. */
export async function failureOf(promise: Promise<unknown>): Promise<unknown> {
  return promise.then(
    () => undefined,
    (error: unknown) => error,
  );
}

function isWorthAnotherRun(error: unknown): boolean {
  return isConflictingTransaction(error) || isConnectionLost(error);
}

/** Stamps the session's beat if it is due, behind a savepoint: the beat must never cost a unit its commit. */
export async function stampBeat(parts: PostgresParts, client: Client | PoolClient): Promise<void> {
  if (!parts.stamp().due()) return;
  const tx = new PostgresTx(parts, client, "", { forgiving: true });
  try {
    await parts.stamp().run(tx);
  } catch (error) {
    if (isConnectionLost(error)) throw error;
  } finally {
    tx.end();
    await tx.idle();
  }
}

export async function take(parts: PostgresParts): Promise<PoolClient> {
  try {
    return await parts.pool.connect();
  } catch (error) {
    throw fromPostgresError(error, parts.location);
  }
}

/** Commits, telling other processes which channels woke. */
export async function commit(
  parts: Pick<PostgresParts, "channel" | "location" | "origin" | "server" | "woken">,
  client: Client | PoolClient,
  channels: ReadonlySet<string>,
): Promise<void> {
  const notices = [...channels].map((each) =>
    client.query({
      name: "notify",
      text: "select pg_catalog.pg_notify($1, $2)",
      values: [parts.channel, `${parts.origin} ${each}`],
    }),
  );
  killPoint("storage.commit");
  let done: string;
  try {
    [done] = await Promise.all([control(client, "commit", parts.server), ...notices]);
  } catch (thrown) {
    const error = fromPostgresError(thrown, parts.location);
    if (!isConnectionLost(error)) throw error;
    // If the server kept it, other processes have heard of it; this one ignores its own notices.
    parts.woken(channels);
    throw new DaybookError(
      "unknown_outcome",
      `the connection to ${parts.location} was lost while committing: whether the transaction was kept is unknown. ` +
        "Look before you do it again, or make it idempotent with a key",
      { cause: error },
    );
  }
  // The server answers the commit of a transaction in which something failed with a rollback, and calls it no error.
  if (done !== "COMMIT") {
    throw new DaybookError("internal", "a statement of the transaction failed unnoticed, so nothing of it was kept");
  }
  killPoint("storage.committed");
}

function unknownOutcome(error: unknown): boolean {
  return error instanceof DaybookError && error.code === "unknown_outcome";
}
