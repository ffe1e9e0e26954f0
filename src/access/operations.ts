// Operations: verbs that may take minutes, which run here while their caller looks at them from elsewhere.
//
//   running ──► completed   with what the verb answered
//           ──► failed      with its error
//           ──► cancelled   on request, with what was done until then
//           ──► lost        its process has ended; what was done until then stays
import type { Timer } from "../core/clock.ts";
import { asDaybookError, conflict, DaybookError, invalid, notFound, warnOf } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkName } from "../core/name.ts";
import { checkPage, type Page, type PageOptions } from "../core/page.ts";
import { quote, storableText } from "../core/quote.ts";
import { hideSecrets } from "../core/secret.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { shape, shapePage } from "../storage/shape.ts";
import { sql } from "../storage/sql.ts";
import type { Row, Store, Tx } from "../storage/store.ts";
import { andEqual, anyOf } from "../storage/word.ts";
import type { Caller } from "./caller.ts";
import { scrub } from "./scrub.ts";
import { tellable } from "./tellable.ts";

export const operationStatuses = ["running", "completed", "failed", "cancelled", "lost"] as const;
export type OperationStatus = (typeof operationStatuses)[number];

export type Operation = {
  readonly id: string;
  readonly verb: string;
  /** Null: it is about all tenants. */
  readonly tenant: string | null;
  readonly by: { readonly name: string; readonly tokenId: string | null } | null;
  readonly status: OperationStatus;
  /** How much is done, and of how much when that is known. */
  readonly done: number;
  readonly total: number | null;
  /** Without its secrets, and cut. */
  readonly input: unknown;
  /** What the verb answered, or for a cancelled one what it had done; null when there is none, or when `resultRefused` says why. */
  readonly result: unknown;
  readonly resultRefused: string | null;
  readonly error: { readonly code: string; readonly message: string } | null;
  readonly startedAt: number;
  readonly updatedAt: number;
  readonly finishedAt: number | null;
  readonly cancelRequestedAt: number | null;
};

export type OperationFilter = PageOptions & { readonly status?: OperationStatus; readonly verb?: string };

export type Operations = {
  /** The newest first. A tenant's handle sees those of the tenant. */
  list(filter?: OperationFilter): Promise<Page<Operation>>;
  get(id: string): Promise<Operation>;
  /** Asks it to end; it ends after the slice that it is at. Of one that has ended: `conflict`. */
  cancel(id: string): Promise<Operation>;
};

/** What an operation is told. `progress` costs nothing: it is written about once a second. */
export type Running = {
  readonly signal: AbortSignal;
  progress(done: number, total: number | null): void;
};

export type NewOperation = {
  readonly verb: string;
  readonly tenant: string | null;
  readonly caller: Caller | null;
  readonly input: unknown;
};

export type Operator = {
  /** Resolves once it is on disk; `run` goes on. What `run` resolves to is kept as JSON. */
  start(of: NewOperation, run: (running: Running) => Promise<unknown>): Promise<Operation>;
  /** A null tenant sees all. */
  get(id: string, tenant: string | null): Promise<Operation>;
  list(tenant: string | null, filter?: OperationFilter): Promise<Page<Operation>>;
  cancel(id: string, tenant: string | null): Promise<Operation>;
  /** Ends what runs here, and resolves once it has ended or has had its time. */
  close(): Promise<void>;
};

const operationChannel = "operation";

type Open = {
  readonly stop: AbortController;
  progress: { readonly done: number; readonly total: number | null };
  /** What the book knows. */
  told: Open["progress"];
  ended?: Promise<void>;
};

/** `session` is the number of this process's session; null for a process that has none. */
export function openOperations(store: Store, session: () => number | null): Operator {
  const open = new Map<string, Open>();
  let timer: Timer | undefined;
  let looking = false;
  let closing = false;

  // Another process may have asked one of ours to end; on SQLite null is all that is heard of another process.
  const stopListening = store.onWake((channel) => {
    if (open.size > 0 && (channel === operationChannel || channel === null)) void look();
  });

  async function look(): Promise<void> {
    if (looking) return;
    looking = true;
    try {
      const rows = await store.read<{ id: string }>(sql`select id from daybook_operation
        where id ${anyOf("text", [...open.keys()])} and cancel_requested_at is not null and status = 'running'`);
      for (const { id } of rows) open.get(id)?.stop.abort();
    } catch {
      // The next progress or wake looks again.
    } finally {
      looking = false;
    }
  }

  function tell(): void {
    timer ??= store.waitClock.after(limits.operationProgressMs, () => {
      timer = undefined;
      const news = [...open].filter(([, each]) => each.progress !== each.told);
      if (news.length === 0) return;
      const write = store.write(async (tx) => {
        for (const [id, { progress }] of news) await writeProgress(tx, id, progress);
      });
      for (const [, each] of news) each.told = each.progress;
      // Telemetry never stops work: the next progress makes up for it.
      void write.then(look).catch(() => undefined);
    });
  }

  async function runToEnd(id: string, one: Open, run: (running: Running) => Promise<unknown>): Promise<void> {
    const { signal } = one.stop;
    const running: Running = {
      signal,
      progress(done, total) {
        one.progress = { done, total };
        tell();
      },
    };
    const end = await run(running).then(
      (result): End => ({ status: signal.aborted ? "cancelled" : "completed", ...kept(result) }),
      (error: unknown): End => (signal.aborted && !closing ? nothing("cancelled") : failed(closing ? stopped : error)),
    );
    open.delete(id);
    await store.write((tx) => writeEnd(tx, id, one.progress, end));
  }

  async function get(id: string, tenant: string | null): Promise<Operation> {
    checkName(id, "operation");
    const rows = await store.read<Row>(sql`${shown} where id = ${id} ${own(tenant)}`);
    return found(rows, id);
  }

  return {
    get,
    async start({ verb, tenant, caller, input }, run) {
      if (closing) throw new DaybookError("closed", `${verb} was called while the book is being closed: open it again`);
      const id = store.ids();
      const idle = { done: 0, total: null };
      const one: Open = { stop: new AbortController(), progress: idle, told: idle };
      open.set(id, one);
      const made = store.write(
        async (tx) => {
          await tx.run(sql`insert into daybook_operation
              (id, tenant_id, verb, token_id, caller, input, session_seq, started_at, updated_at)
            values (${id}, ${tenant}, ${verb}, ${caller?.tokenId ?? null}, ${caller?.name ?? null}, ${scrub(input)},
              ${session()}, ${tx.now}, ${tx.now})`);
          return found(await tx.all<Row>(sql`${shown} where id = ${id}`), id);
        },
        { by: "shared" },
      );
      made.catch(() => open.delete(id));
      const operation = await made;
      one.ended = runToEnd(id, one, run).catch((error: unknown) =>
        warnOf("DAYBOOK_OPERATION", `the end of the operation ${id} (${verb}) could not be written`, error),
      );
      return operation;
    },
    async list(tenant, filter = {}) {
      refuseUnknown(filter, ["limit", "after", "status", "verb"], "operations.list");
      const { limit, after } = checkPage(filter);
      const { status, verb } = filter;
      if (status !== undefined && !operationStatuses.includes(status)) {
        throw invalid(`status is ${quote(status)}: give one of ${operationStatuses.join(", ")}`);
      }
      if (verb !== undefined) checkName(verb, "verb");
      const found = await store.readPage<Row>(sql`${shown} where seq < ${after ?? Number.MAX_SAFE_INTEGER}
        ${own(tenant)} ${andEqual({ status, verb })} order by seq desc limit ${limit + 1}`);
      return shapePage<Operation>(found, limit);
    },
    async cancel(id, tenant) {
      const { status } = await get(id, tenant);
      if (status !== "running") throw hasEnded(id, status);
      await store.write(async (tx) => {
        const asked = await tx.run(sql`update daybook_operation
          set cancel_requested_at = coalesce(cancel_requested_at, ${tx.now}) where id = ${id} and status = 'running'`);
        if (asked > 0) tx.wake(operationChannel);
      });
      open.get(id)?.stop.abort();
      return get(id, tenant);
    },
    async close() {
      closing = true;
      stopListening();
      for (const { stop } of open.values()) stop.abort();
      const bound = new AbortController();
      const late = store.waitClock.after(limits.operationStopMs, () => bound.abort(), { keepAlive: true });
      const aborted = new Promise<void>((resolve) => bound.signal.addEventListener("abort", () => resolve()));
      await Promise.race([Promise.all([...open.values()].map(({ ended }) => ended ?? Promise.resolve())), aborted]);
      late.cancel();
      timer?.cancel();
    },
  };
}

type End = Pick<Operation, "resultRefused" | "error"> & {
  readonly status: OperationStatus;
  readonly result: string | null;
};

const stopped = new DaybookError("closed", "the book was closed before it had ended: what was done until then stays");

function nothing(status: OperationStatus): End {
  return { status, result: null, resultRefused: null, error: null };
}

/** What is larger than a row should be, or is no JSON, is not kept: the work is done all the same. */
function kept(result: unknown): Pick<End, "result" | "resultRefused" | "error"> {
  try {
    const text = result === undefined ? null : hideSecrets(toJson(result, { what: "the answer" }));
    return { result: text, resultRefused: null, error: null };
  } catch (error) {
    return { result: null, resultRefused: asDaybookError(error).message, error: null };
  }
}

function failed(error: unknown): End {
  const { code, message, isKept } = tellable(error);
  if (isKept) warnOf("DAYBOOK_OPERATION", "an operation failed", error);
  const shown = isKept ? `${message} Its process has logged more.` : message;
  return { ...nothing("failed"), error: { code, message: storableText(shown, limits.errorMessageBytesMax) } };
}

async function writeProgress(tx: Tx, id: string, { done, total }: Open["progress"]): Promise<void> {
  await tx.run(sql`update daybook_operation set done = ${done}, total = ${total}, updated_at = ${tx.now}
    where id = ${id} and status = 'running'`);
}

// A process that was taken for dead and lives knows better than those that gave it up.
async function writeEnd(tx: Tx, id: string, { done, total }: Open["progress"], end: End): Promise<void> {
  const { status, result, resultRefused, error } = end;
  await tx.run(sql`update daybook_operation set status = ${status}, done = ${done}, total = ${total}, result = ${result},
      result_refused = ${resultRefused}, error_code = ${error?.code ?? null}, error_message = ${error?.message ?? null},
      updated_at = ${tx.now}, finished_at = ${tx.now}
    where id = ${id} and status in ('running', 'lost')`);
  tx.wake(operationChannel);
}

const shown = sql`select seq as ".seq", id, verb, tenant_id as tenant, caller as "by.name", token_id as "by.tokenId", status,
  done, total, input as "input json", result as "result json", result_refused as "resultRefused", error_code as "error.code",
  error_message as "error.message", started_at as "startedAt", updated_at as "updatedAt", finished_at as "finishedAt",
  cancel_requested_at as "cancelRequestedAt" from daybook_operation operation`;

function own(tenant: string | null) {
  return tenant === null ? sql`` : sql`and tenant_id = ${tenant}`;
}

function found(rows: readonly Row[], id: string): Operation {
  const [operation] = shape<Operation>(rows);
  if (operation === undefined) throw notFound(`no operation has the id ${quote(id)}`, { id });
  return operation;
}

function hasEnded(id: string, status: OperationStatus): DaybookError {
  return conflict(`the operation ${id} has ended (${status}): there is nothing to cancel`, { id, status });
}

/** The operations of a process that has ended. */
export async function loseOperations(tx: Tx, sessionSeq: number): Promise<void> {
  await tx.run(sql`update daybook_operation set status = 'lost', finished_at = ${tx.now}, updated_at = ${tx.now}
    where session_seq = ${sessionSeq} and status = 'running'`);
}

/** For a copy of the book, which has none of the processes of the original. */
export function endCopiedOperations(now: number) {
  return [
    sql`update daybook_operation set status = 'lost', finished_at = ${now}, updated_at = ${now} where status = 'running'`,
  ];
}

export async function removeOperations(tx: Tx, by: number, limit: number): Promise<number> {
  return tx.run(sql`delete from daybook_operation where seq in (
    select seq from daybook_operation where finished_at < ${by} order by seq limit ${limit})`);
}
