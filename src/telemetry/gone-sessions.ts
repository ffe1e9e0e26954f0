// Sessions that are called running and whose process is provably gone from this host. Whoever shows what runs asks for them:
// a process that was killed a moment ago ends in the book only when another one looks.
import type { Store } from "../storage/store.ts";
import { isProvablyGone, thisProcess, type ProcessIdentity } from "./process-identity.ts";
import { runningSessions, type SessionRow } from "./session.ts";

type Owner = Pick<SessionRow, "host" | "host_boot" | "host_namespace" | "pid" | "process_started">;

export function isGone(row: Owner, self: ProcessIdentity, { dialect }: Pick<Store, "dialect">): boolean {
  const { host, host_boot: hostBoot, host_namespace: hostNamespace, pid, process_started: processStarted } = row;
  return isProvablyGone({ host, hostBoot, hostNamespace, pid, processStarted }, self, {
    sameMachine: dialect === "sqlite",
  });
}

export async function goneSessions(store: Pick<Store, "dialect" | "read">): Promise<SessionRow[]> {
  const self = thisProcess();
  return (await store.read<SessionRow>(runningSessions())).filter((row) => isGone(row, self, store));
}
