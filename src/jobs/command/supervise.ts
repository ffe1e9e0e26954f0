// Starts a program and stays with it until it and all it started are gone, by itself or because its run has to end.
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Clock } from "../../core/clock.ts";
import { killPoint } from "../../core/fault.ts";
import { processStarted } from "../../telemetry/process-identity.ts";
import type { RunContext } from "../context.ts";
import type { Engine } from "../engine.ts";
import { noteProcess } from "./command-row.ts";
import { environmentOf, type CommandEnvironment } from "./environment.ts";
import type { LogFile } from "./log-file.ts";
import { startProgram, type Program, type ProgramEnd } from "./program.ts";

/** How long the output may stay open when the group has ended: somebody who left the group has it. */
const outputMs = 1000;
const outputSteps = 10;

type Start = { readonly argv: readonly string[]; readonly cwd: string; readonly env: CommandEnvironment };

export async function supervise(
  engine: Engine,
  { job, signal }: RunContext,
  log: LogFile,
  { argv, cwd, env }: Start,
): Promise<{ end: ProgramEnd; stopped: boolean }> {
  const { clock } = engine;
  const { reader, writer } = await openPipe();
  let program: Program | undefined;
  const stop = (): void => program?.stop();
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    program = await startProgram({ argv, cwd, env: environmentOf(env, job.runId), output: writer, clock });
    killPoint("command.started");
    // The program has its own by now; while we held ours, the output would never end.
    writer.destroy();
    const outputEnded = log.follow(reader);
    // It may have been aborted while its folder was looked at.
    if (signal.aborted) stop();
    const noted = noteProcess(engine, job, { pid: program.pid, started: startOf(program.pid) });
    // A program whose number nobody knows must not go on.
    noted.catch(stop);
    const end = await program.ended;
    await program.endRest(outputEnded);
    const read = new AbortController();
    void giveUpReading(clock, reader, read.signal);
    await outputEnded;
    read.abort();
    await noted;
    return { end, stopped: program.stopping };
  } finally {
    signal.removeEventListener("abort", stop);
    writer.destroy();
    reader.destroy();
  }
}

// One pipe for all that a program says. Its stdout and stderr are the same end of it, so what comes out is in the order
// in which it went in; two pipes would be read one after the other. Node makes no pipes by themselves, so this is a
// socket that nobody else can reach, with its name taken away as soon as both ends hold it. `writer` is for the program; ours is
// closed once it has its own.
async function openPipe(): Promise<{ reader: Socket; writer: Socket }> {
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

// In steps, because a loop that was held up for as long finds the time gone and all that is there unread: then one step is.
async function giveUpReading(clock: Clock, reader: Socket, read: AbortSignal): Promise<void> {
  for (let step = 0; step < outputSteps; step++) await clock.sleep(outputMs / outputSteps, read);
  reader.destroy();
}

// One that has ended already is a zombie until it is taken note of, which tells it from nobody.
function startOf(pid: number): string | null {
  const started = processStarted(pid);
  return started === "zombie" ? null : started;
}
