// Runs a verb on a server: the input goes out as a request, and what comes back is printed as if a book had answered here.
import type { Command } from "commander";
import { systemClock } from "../core/clock.ts";
import { durationMs } from "../core/duration.ts";
import { isDaybookError } from "../core/error.ts";
import { verbsOf, type NounName } from "../verbs/table.ts";
import type { Ask, Verb } from "../verbs/verb.ts";
import { fromWire } from "../verbs/wire.ts";
import { readText, type Input } from "./read-input.ts";
import { connect, parseReply, type Connection } from "./remote/connection.ts";
import { progressLine, resultOf, type Operation } from "./remote/operation.ts";
import { requestOf } from "./remote/request.ts";
import { itemsOf, linesOf } from "./remote/stream.ts";
import { answerSchemas, showAnswer } from "./show-answer.ts";
import { listenForSignals } from "./stop.ts";
import { serverOf } from "./target.ts";
import { printAnswer, type Answer } from "./with-book.ts";

export async function callServer(command: Command, key: string, verb: Verb, input: Input): Promise<void> {
  const server = await serverOf(command, verb, readText);
  const stop = listenForSignals();
  try {
    const calling: Calling = { command, connection: connect(server, stop.signal), signal: stop.signal };
    const working = answerOf(calling, key, verb, input);
    const answer = await Promise.race([working, stop.asked]);
    if (answer !== undefined) await printAnswer(command, answer);
    if (stop.signal.aborted) await stop.leave(working);
  } finally {
    stop.release();
  }
}

type Calling = { readonly command: Command; readonly connection: Connection; readonly signal: AbortSignal };

async function answerOf(calling: Calling, key: string, verb: Verb, input: Input): Promise<Answer | undefined> {
  const { command, connection } = calling;
  const request = requestOf(verb, input);
  const ask: Ask = async (other, wanted) => {
    const [found] = await keysOf(key, other);
    return (await askOnce(calling, found ?? key, other, wanted)) as never;
  };
  const shown = (answer: unknown): Promise<Answer | undefined> =>
    showAnswer(command, key, { verb, input, answer, ask });
  if (verb.lines === true) return shown(linesOf(connection, request));
  if (verb.stream === true) return shown(read(key, itemsOf(connection, request)));
  if (verb.background === undefined) return shown(await askUntil(calling, key, verb, input));
  const { status, text } = await connection.send(request);
  const said = parseReply(connection.server, text);
  if (status !== 202) return shown(await readAnswer(key, said));
  const { wait = true } = command.opts<{ wait?: boolean }>();
  return wait
    ? shown(await readAnswer(key, await waitFor(calling, said as Operation)))
    : begunAnswer(said as Operation);
}

/** Verbs of the same noun know each other by themselves, and a schema is found by its key. */
async function keysOf(key: string, verb: Verb): Promise<string[]> {
  const [noun = ""] = key.split(".");
  return (await verbsOf(noun as NounName)).flatMap(([name, each]) => (each === verb ? [name] : []));
}

async function askOnce({ connection }: Calling, key: string, verb: Verb, input: Input): Promise<unknown> {
  const { status, text } = await connection.send(requestOf(verb, input));
  if (status === 204) return undefined;
  return verb.text === true ? text : readAnswer(key, parseReply(connection.server, text));
}

/** A server keeps no request waiting for ever, so what waits is asked again until it has ended, or the time is up. */
const sliceMs = 20_000;

async function askUntil(calling: Calling, key: string, verb: Verb, input: Input): Promise<unknown> {
  if (!isWaiting(verb, input)) return askOnce(calling, key, verb, input);
  const { timeout } = input;
  const patienceMs = typeof timeout === "string" ? durationMs(timeout, "timeout") : Infinity;
  if (patienceMs <= sliceMs) return askOnce(calling, key, verb, input);
  const endMs = systemClock.monotonic() + patienceMs;
  for (;;) {
    const leftMs = Math.max(0, Math.ceil(endMs - systemClock.monotonic()));
    try {
      return await askOnce(calling, key, verb, { ...input, timeout: `${Math.min(leftMs, sliceMs)}ms` });
    } catch (error) {
      if (!isDaybookError(error) || error.code !== "timeout" || leftMs <= sliceMs) throw error;
    }
  }
}

/** What only reads and takes a timeout waits for something; some only if they are asked to. */
function isWaiting({ role, input: fields }: Verb, input: Input): boolean {
  if (role !== "read" || !Object.hasOwn(fields, "timeout")) return false;
  return !Object.hasOwn(fields, "wait") || input["wait"] === true;
}

async function readAnswer(key: string, said: unknown): Promise<unknown> {
  const { outputs, defs } = await answerSchemas();
  return fromWire(said, outputs[key], defs);
}

async function* read(key: string, items: AsyncIterable<unknown>): AsyncGenerator<unknown> {
  for await (const item of items) yield await readAnswer(key, item);
}

async function waitFor({ connection, command, signal }: Calling, operation: Operation): Promise<unknown> {
  const { json = false } = command.optsWithGlobals<{ json?: boolean }>();
  const { stderr } = process;
  const isSeen = !json && stderr.isTTY;
  try {
    return await resultOf(connection, operation, {
      signal,
      tell: (each) => void (isSeen && stderr.write(`\r\u001B[K${progressLine(each)}`)),
    });
  } finally {
    if (isSeen) stderr.write("\r\u001B[K");
    if (signal.aborted) stderr.write(`${goesOn(operation)}\n`);
  }
}

function begunAnswer(operation: Operation): Answer {
  return { json: operation, text: () => goesOn(operation) };
}

function goesOn({ id }: Operation): string {
  return `the operation ${id} goes on: look at it with "daybook operations show ${id}"`;
}
