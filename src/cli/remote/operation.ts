// What takes long on a server is an operation: it is looked at until it has ended, and the person who waits sees how far it is.
import { systemClock } from "../../core/clock.ts";
import { DaybookError } from "../../core/error.ts";
import { parseReply, problemError, type Connection } from "./connection.ts";
import { progressText } from "../progress-line.ts";

/** What is read of an operation. */
export type Operation = {
  readonly id: string;
  readonly status: "running" | "completed" | "failed" | "cancelled" | "lost";
  readonly done: number;
  readonly total: number | null;
  readonly result: unknown;
  readonly error: { readonly code: string; readonly message: string } | null;
};

/** How often it is looked at: at once for what is short, and no more than this for what is long. */
const lookMs = { first: 50, most: 2000 } as const;

/** What it answered, on the wire. `tell` hears of each look. */
export async function resultOf(
  connection: Connection,
  begun: Operation,
  { signal, tell }: { readonly signal: AbortSignal; readonly tell: (operation: Operation) => void },
): Promise<unknown> {
  let operation = begun;
  for (
    let waitMs: number = lookMs.first;
    operation.status === "running";
    waitMs = Math.min(waitMs * 1.5, lookMs.most)
  ) {
    tell(operation);
    await systemClock.sleep(waitMs, signal);
    signal.throwIfAborted();
    operation = await look(connection, begun.id);
  }
  tell(operation);
  const { id, status, result, error } = operation;
  if (status === "completed") return result;
  // What was refused is told as on a book: whether it took long enough to become an operation is nobody's concern.
  if (error !== null) throw problemError({ code: error.code, detail: error.message }, connection.server.url);
  const details = { operation: id };
  if (status === "cancelled") throw new DaybookError("conflict", `the operation ${id} was cancelled`, { details });
  const message = `the server that ran the operation ${id} is gone: see what was done before you repeat it`;
  throw new DaybookError("unknown_outcome", message, { details });
}

async function look(connection: Connection, id: string): Promise<Operation> {
  const { text } = await connection.send({ method: "GET", path: `/operations/${id}`, body: undefined, hasKey: false });
  return parseReply(connection.server, text) as Operation;
}

/** One line that is written anew as it goes on. */
export function progressLine({ done, total }: Operation): string {
  return done === 0 && total === null ? "working …" : progressText(done, total);
}
