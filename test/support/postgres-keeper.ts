// A process of its own that starts one PostgreSQL server, and stops it and removes its data when its owner is gone.
// The channel to the owner is the whole agreement: it closes when the owner asks for the end, and the kernel closes it
// when the owner crashes or is killed. So nothing is left behind, whichever way a test run ends.
import { type Cluster, type ClusterKind, createCluster } from "./postgres-cluster.ts";
import { killPostmaster, type Postmaster, startPostmaster, stopPostmaster } from "./postgres-postmaster.ts";
import { removeScratch, sweepScratch } from "./scratch.ts";

export type Command = "start" | "kill";
export type Reply = { pid: number; port: number } | { failure: string };

const kind = process.argv[2] as ClusterKind;
const scratches: string[] = [];
let cluster: Cluster | undefined;
let postmaster: Postmaster | undefined;
let turn = Promise.resolve(); // Commands and the end wait for one another.

process.on("message", (command: Command) => {
  turn = turn.then(() => obey(command)).then(reply, (error: Error) => reply({ failure: error.message }));
});
process.once("disconnect", leave);
for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(name, () => process.connected && process.disconnect?.());
}
if (!process.connected) leave();

async function obey(command: Command): Promise<Reply> {
  if (command === "start") {
    sweepScratch();
    cluster ??= createCluster(kind, (path) => scratches.push(path));
    postmaster = await startPostmaster(cluster, postmaster?.port);
    return { pid: postmaster.pid, port: postmaster.port };
  }
  if (!cluster || !postmaster) throw new Error("There is no PostgreSQL to kill: it was not started.");
  await killPostmaster(cluster, postmaster);
  return { pid: postmaster.pid, port: postmaster.port };
}

function reply(message: Reply): void {
  // The owner may have left while its command was carried out.
  if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
}

function leave(): void {
  turn = turn.then(async () => {
    try {
      if (cluster && postmaster) await stopPostmaster(cluster, postmaster);
    } finally {
      for (const path of scratches) removeScratch(path);
    }
    process.exit();
  });
}
