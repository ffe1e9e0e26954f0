// Stops a process (SIGSTOP) as a debugger, a frozen container or a suspended laptop would.
import { readFileSync } from "node:fs";
import { isDaybookError } from "../../src/index.ts";
import { sql } from "../../src/storage/sql.ts";
import type { Store } from "../../src/storage/store.ts";
import type { SessionRow } from "../../src/telemetry/session.ts";
import type { JobProcess } from "./job-process.ts";
import { until } from "./session-row.ts";

/** Stops the process at a moment at which it holds no lock; otherwise nobody could end its session for it. */
export async function stopOutsideOfWrites(child: JobProcess, store: Store, sessionId: string): Promise<SessionRow> {
  for (;;) {
    child.signal("SIGSTOP");
    await untilStopped(child.pid);
    try {
      const locked = await store.write((tx) => tx.all<SessionRow>(lockedSession(store, sessionId)));
      return locked[0] as SessionRow;
    } catch (error) {
      if (!isDaybookError(error) || error.code !== "busy") throw error;
      child.signal("SIGCONT");
    }
  }
}

/** The kernel lets the other threads of a process run on until the one that takes the signal has its turn on a core. */
export async function untilStopped(pid: number): Promise<void> {
  await until("the process is stopped", async () => (stateOf(pid) === "T" ? true : undefined));
}

function stateOf(pid: number): string | undefined {
  const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
  return stat.slice(stat.lastIndexOf(")") + 2).split(" ")[0];
}

const lockedSession = ({ dialect }: Store, id: string): ReturnType<typeof sql> =>
  dialect === "sqlite"
    ? sql`select * from daybook_session where id = ${id}`
    : sql`select * from daybook_session where id = ${id} for update nowait`;
