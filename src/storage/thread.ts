// Threads of the package: how one starts, and how it writes to the book.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { render, type Dialect, type Sql } from "./sql.ts";
import { openConnection } from "./sqlite/connection.ts";

/** Starts one of the package's thread files, from source in the repository and from compiled code when published. `name` is the file
 *  without its ending, beside the module whose `import.meta.url` is given. */
export function startThread(name: string, besideUrl: string, data: unknown): Worker {
  const worker = new Worker(new URL(`${name}${extname(besideUrl)}`, besideUrl), { workerData: data });
  worker.unref(); // a thread that only serves must not keep a finished program alive
  return worker;
}

/** A connection for a thread that writes now and then beside the main one, such as the session's stand-in for a busy event loop.
 *  It may block its own thread for as long as it likes: nothing else runs there. */
export type SideWriter = { run(statement: Sql): Promise<number>; close(): Promise<void> };
export type SideTarget = { readonly dialect: Dialect; readonly location: string; readonly schema: string | undefined };

// A try that fails is made again a moment later; in between the thread hears whether it should stop.
const busyMs = 2000;

export async function openSideWriter(target: SideTarget): Promise<SideWriter> {
  if (target.dialect === "sqlite") {
    const connection = openConnection(target.location, { busyMs });
    return {
      run: async (statement) => connection.run(render(statement, "sqlite")),
      close: async () => connection.close(),
    };
  }
  const { connectClient, send } = await import("./postgres/connect.ts");
  const server = { url: target.location, schema: target.schema ?? "daybook" };
  const client = await connectClient(server);
  return {
    run: async (statement) => (await send(client, render(statement, "postgres"), server)).count,
    close: () => client.end(),
  };
}
