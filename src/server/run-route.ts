// One request to one verb: who asks is known by now. The input is read, the verb runs, and its answer goes out in the form that the
// verb's marks say.
import { hash } from "node:crypto";
import type { Access } from "../access/access.ts";
import type { Operation } from "../access/operations.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { isObject } from "../core/json.ts";
import { quote } from "../core/quote.ts";
import { pace } from "../storage/slices.ts";
import type { Call, Verb } from "../verbs/verb.ts";
import { toWire, type Outputs } from "../verbs/wire.ts";
import { frameOf, openEventStream } from "./event-stream.ts";
import { headersOfAll, refuseHead } from "./guard.ts";
import { keptReply, keyOf, type Reply } from "./kept-reply.ts";
import type { OpenStreams } from "./open-streams.ts";
import { problemOf } from "./problem.ts";
import { readInput, readText, type Input } from "./read-input.ts";
import type { VerbRoute } from "./routes.ts";
import { audited, entryOf, runAudited, tenantOf, type Calling } from "./run-audited.ts";

export type Asked = Calling & {
  readonly route: VerbRoute;
  readonly request: Request;
  param(name: string): string;
  /** Fields that the route itself gives. */
  readonly also?: Input;
  /** The tenant that the caller named, or is bound to; null when it speaks for the whole book. */
  readonly tenant: string | null;
  /** Where operations stand: `/api/v1/operations`. */
  readonly base: string;
  readonly outputs: Outputs;
  readonly streams: OpenStreams;
  /** Aborts when the server ends: who waits is told so. */
  readonly ending: AbortSignal;
  stillKnown(): Promise<boolean>;
  /** Hears what went wrong on our side. */
  failed(error: unknown): void;
};

const jsonHeaders = { ...headersOfAll, "content-type": "application/json", "cache-control": "no-store" };

/** A request that waits for something is answered by then, with what there is or a `timeout`. */
const waitMsMax = 30_000;

export async function runRoute(asked: Asked): Promise<Response> {
  const { route, request } = asked;
  const { method } = route;
  if (method === "GET") return answerRead(asked);
  const body = await readText(request);
  // A lease is shown once and kept nowhere. Whoever has it may say the same twice, and is answered so.
  const key = route.verb.role === "worker" ? undefined : keyOf(request.headers);
  const make = (): Promise<Reply> => change(asked, body);
  if (key === undefined) return responseOf(await make());
  const keyed = {
    key,
    // A change that asks for a revision is another one than the same without it.
    body: `${request.headers.get("if-match") ?? ""}\n${body}`,
    caller: asked.caller,
    tenant: asked.book.tenantId,
    route: `${method} ${new URL(request.url).pathname}`,
  };
  return responseOf(await keptReply(asked.access, keyed, make));
}

async function answerRead(asked: Asked): Promise<Response> {
  const { route, request, book } = asked;
  const { verb } = route;
  const input = readInput(route, { ...asked, url: request.url, body: "" });
  const call = callOf(asked);
  if (verb.stream === true || verb.lines === true) return streamOf(asked, input);
  const ran = verb.run(book, input, call);
  const answer = await (Object.hasOwn(verb.input, "timeout") ? unlessLeft(asked, ran) : ran);
  if (verb.text === true) {
    return new Response(String(answer), { headers: { ...jsonHeaders, "content-type": "text/plain; charset=utf-8" } });
  }
  if (answer === undefined) return new Response(null, { status: 204, headers: headersOfAll });
  const text = await wireText(asked, answer);
  const etag = etagOf(answer, text);
  if (request.headers.get("if-none-match") === etag)
    return new Response(null, { status: 304, headers: { ...headersOfAll, etag } });
  return new Response(text, { headers: { ...jsonHeaders, etag } });
}

/** Who has gone, and a server that is to end, wait for nothing. */
function unlessLeft({ request, ending }: Asked, ran: unknown): Promise<unknown> {
  const left = AbortSignal.any([request.signal, ending]);
  const leaving = new Promise<never>((_, reject) => {
    const leave = (): void => reject(new DaybookError("closed", "the server is ending: ask again in a moment"));
    if (left.aborted) leave();
    else left.addEventListener("abort", leave, { once: true });
  });
  return Promise.race([ran, leaving]);
}

/** A problem is a reply as well, since it is kept like one. */
async function change(asked: Asked, body: string): Promise<Reply> {
  try {
    const { route, request } = asked;
    const also = { ...asked.also, ...revisionOf(asked) };
    const input = readInput(route, { ...asked, url: request.url, body, also, otherwise: keyInVerb(asked) });
    // A large document takes the loop about as long to read as the verb takes to check and write it.
    await pace()(body);
    return await changed(asked, input);
  } catch (error) {
    const { problem, headers } = problemOf(error);
    asked.failed(error);
    return {
      status: problem.status,
      headers: { ...headers, "content-type": "application/problem+json" },
      body: JSON.stringify(problem),
    };
  }
}

/** For a way in that has the input at hand, checked, and is given the answer in wire form or as the verb gives it. */
export async function runInput(asked: Asked, input: Input): Promise<unknown> {
  const { method, verb } = asked.route;
  if (method === "GET") return verb.run(asked.book, input, callOf(asked));
  const { body } = await changed(asked, input);
  return body === "" || verb.text === true ? body : (JSON.parse(body) as unknown);
}

async function changed(asked: Asked, input: Input): Promise<Reply> {
  const { route, book, access, caller } = asked;
  const { verb, key: name } = route;
  if (isBackground(verb, input)) {
    const of = { verb: name, tenant: tenantOf(asked), caller, input };
    const run: Parameters<Access["operations"]["start"]>[1] = async ({ signal, progress }) =>
      onWire(asked, await verb.run(book, input, { ...callOf(asked), signal, progress }));
    const start = (): Promise<Operation> => access.operations.start(of, run);
    const operation = await audited(entryOf(asked, input), access, start, 202);
    return {
      status: 202,
      headers: { location: `${asked.base}/operations/${operation.id}`, "content-type": "application/json" },
      body: JSON.stringify(toWire(operation, asked.outputs.outputs["operations.show"], asked.outputs.defs)),
    };
  }
  const answer = await runAudited(asked, input, callOf(asked));
  const status = answer === undefined ? 204 : 200;
  if (verb.text === true)
    return { status, headers: { "content-type": "text/plain; charset=utf-8" }, body: String(answer) };
  if (answer === undefined) return { status, headers: {}, body: "" };
  return { status, headers: { "content-type": "application/json" }, body: await wireText(asked, answer) };
}

/** What is only said, and the one thing that is named, does not take long. */
function isBackground({ background, destroys }: Verb, input: Input): boolean {
  if (background === undefined || (background !== true && input[background] !== undefined)) return false;
  return destroys === undefined ? input["dryRun"] !== true : input["apply"] === true;
}

/** A signal costs more than most reads, so it is made for the verbs that ask for it. */
function callOf({ request, tenant, caller, ending }: Asked): Call {
  const { queues, names, tokenId } = caller;
  let signal: AbortSignal | undefined;
  return {
    get signal() {
      return (signal ??= AbortSignal.any([request.signal, ending, AbortSignal.timeout(waitMsMax)]));
    },
    tenant,
    waitMsMax,
    worker: { queues, names, tokenId },
  };
}

function onWire({ route, outputs }: Pick<Asked, "route" | "outputs">, answer: unknown): unknown {
  return toWire(answer, outputs.outputs[route.key], outputs.defs);
}

/** Item by item where it is a list: a page of large ones would hold the loop while all of it is written. */
async function wireText(asked: Asked, answer: unknown): Promise<string> {
  const wire = onWire(asked, answer);
  if (Array.isArray(wire)) return listText(wire);
  if (!isObject(wire) || !Array.isArray(wire["items"])) return JSON.stringify(wire);
  const { items, ...others } = wire;
  const rest = JSON.stringify(others);
  return `{"items":${await listText(items)}${rest === "{}" ? "" : `,${rest.slice(1, -1)}`}}`;
}

async function listText(items: readonly unknown[]): Promise<string> {
  const [texts, turn] = [[] as string[], pace()];
  for (const item of items) {
    const text = JSON.stringify(item);
    texts.push(text);
    const pause = turn(text);
    if (pause !== undefined) await pause;
  }
  return `[${texts.join(",")}]`;
}

/** The revision where the answer has one, so that a change can ask for it by `If-Match`; else what the text comes to. */
function etagOf(answer: unknown, text: string): string {
  const revision: unknown =
    typeof answer === "object" && answer !== null && "revision" in answer ? answer.revision : undefined;
  if (typeof revision === "number") return `"${revision}"`;
  return `W/"${hash("sha1", text, "base64url").slice(0, 16)}"`;
}

function revisionOf({ route, request }: Asked): Input {
  const given = request.headers.get("if-match");
  if (given === null) return {};
  if (!Object.hasOwn(route.verb.input, "ifRevision")) {
    throw invalid("If-Match is given to a route that knows no revisions: leave it out");
  }
  const [, revision] = /^"(\d{1,15})"$/.exec(given) ?? [];
  if (revision === undefined)
    throw invalid(`If-Match is ${quote(given)}: give the ETag that the record was read with, such as "3"`);
  return { ifRevision: Number(revision) };
}

/** A verb that keeps a key of its own has the effect and the key in one commit, so that not even a crash can part them. */
function keyInVerb({ route, request, caller }: Asked): Input {
  const key = keyOf(request.headers);
  if (key === undefined || !Object.hasOwn(route.verb.input, "idempotencyKey")) return {};
  return { idempotencyKey: `http:${hash("sha256", `${caller.tokenId ?? "link"} ${key}`, "base64url")}` };
}

function streamOf(asked: Asked, input: Input): Response {
  const { route, request, book, tenant, streams, stillKnown } = asked;
  const { verb } = route;
  refuseHead(request);
  const opened = streams.open(stillKnown);
  const leaving = new AbortController();
  const signal = AbortSignal.any([opened.signal, leaving.signal]);
  const items = verb.run(book, input, { signal, tenant }) as AsyncIterable<unknown>;
  if (verb.lines === true) return linesOf(items, () => (leaving.abort(), opened.end()));
  const stream = openEventStream(headersOfAll, () => (leaving.abort(), opened.end()));
  void (async () => {
    try {
      for await (const item of items) if (!stream.send(frameOf({ event: "item", data: onWire(asked, item) }))) return;
      stream.end(frameOf({ event: "end", data: {} }));
    } catch (error) {
      stream.end(signal.aborted ? undefined : frameOf({ event: "error", data: problemOf(error).problem }));
    }
  })();
  return stream.response;
}

// Lines are read as fast as they are taken.
function linesOf(items: AsyncIterable<unknown>, onEnd: () => void): Response {
  const lines = items[Symbol.asyncIterator]();
  const utf8 = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const line = await lines.next();
      if (line.done !== true) return controller.enqueue(utf8.encode(`${String(line.value)}\n`));
      onEnd();
      controller.close();
    },
    async cancel() {
      onEnd();
      await lines.return?.();
    },
  });
  return new Response(body, {
    headers: { ...headersOfAll, "content-type": "application/jsonl", "cache-control": "no-store" },
  });
}

function responseOf({ status, headers, body }: Reply): Response {
  const all = { ...headersOfAll, "cache-control": "no-store", ...headers };
  return new Response(status === 204 ? null : body, { status, headers: all });
}
