// One pipe for all that a program says. Its stdout and stderr are the same end of it, so what comes out is in the order
// in which it went in; two pipes would be read one after the other. Node makes no pipes by themselves, so this is a
// socket that nobody else can reach, with its name taken away as soon as both ends hold it.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";

export type OutputPipe = {
  readonly reader: Socket;
  /** For the program; close ours once it has its own. */
  readonly writer: Socket;
};

export async function openPipe(): Promise<OutputPipe> {
  // The folder is the owner's alone.
  const folder = await mkdtemp(join(tmpdir(), "daybook-"));
  const server = createServer({ pauseOnConnect: true });
  try {
    server.listen(join(folder, "output"));
    await once(server, "listening");
    const writer = connect(join(folder, "output"));
    const [[reader]] = (await Promise.all([once(server, "connection"), once(writer, "connect")])) as [
      [Socket],
      unknown,
    ];
    return { reader, writer };
  } finally {
    server.close();
    await rm(folder, { recursive: true, force: true });
  }
}
