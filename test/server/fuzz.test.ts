// Requests that are made from the document of the API, right ones and wrong ones: none of them is a failure of the server, and every
// reply is what the document says.
import assert from "node:assert/strict";
import { test } from "node:test";
import { z } from "zod";
import { entity, event, job, listener, open, relation, type Book } from "../../src/index.ts";
import type { Schema } from "../../src/verbs/field.ts";
import { backends } from "../support/open-test.ts";
import { openServer, origin } from "../support/open-server.ts";
import { misfit, resolve } from "../support/json-schema.ts";
import { fc, isProof, seed } from "../support/property.ts";
import { requestOf, type Fuzzed, type Operation } from "../support/requests-of.ts";

const Note = entity("note", { schema: z.object({ id: z.string(), text: z.string() }), key: "id", search: ["text"] });
const Cites = relation("cites", { from: Note, to: Note, schema: z.object({ why: z.string() }) });
const Said = event<{ text: string }>("said.aloud");
const work = job("work", {
  attempts: 1,
  run({ fails }: { fails?: boolean }) {
    if (fails === true) throw new Error("no");
    return { done: true };
  },
});
const hear = listener("hear", {
  on: Said,
  attempts: 1,
  run() {
    throw new Error("deaf");
  },
});
const use = [Note, Cites, Said, work, hear];

/** Something of everything; what it is called by is what the requests may name. */
async function fill(url: string): Promise<Record<string, string[]>> {
  const book = await open(url, { use });
  const done = await book.jobs.enqueue(work, {}, { tags: ["a"], key: "k" });
  const failed = await book.jobs.enqueue(work, { fails: true });
  const said = await book.events.publish(Said, { text: "a" });
  await workOff(book);
  const waiting = await book.jobs.enqueue(work, {}, { in: "1d", queue: "mail" });
  const group = await book.groups.create({ name: "batch", mode: "parallel" }, (add) => add.add(work, {}));
  await book.templates.create("letter", { job: work });
  await book.schedules.create("nightly", { every: "1h", job: work });
  const call = await book.calls.submit({ url: "https://shop.example/a", in: "30d" });
  await book.records.put(Note, { id: "n-1", text: "one" });
  await book.records.put(Note, { id: "n-2", text: "two" });
  await book.records.link(Cites, { from: "n-1", to: "n-2" }, { why: "so" });
  const [run] = (await book.runs.list()).items;
  const [dead] = (await book.deadLetters.list()).items;
  const { id: token } = await book.tokens.create({ role: "read", tenant: "default" });
  const { session } = await book.workers.attach({ names: ["remote"], host: "h" });
  await book.jobs.enqueue("remote", {});
  const [leased] = await book.workers.claim(session);
  await book.close();
  const [operation, decision] = ["019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e", "2026-01-01T00:00:00Z"];
  return {
    jobs: [done.id, failed.id, waiting.id],
    groups: [group.id],
    templates: ["letter"],
    schedules: ["nightly"],
    slot: [decision],
    events: [said.id],
    topic: ["said.aloud", "said.*"],
    listeners: ["hear"],
    deadLetters: [dead?.id ?? ""],
    calls: [call.id],
    runs: [run?.id ?? ""],
    queues: ["mail", "default"],
    queue: ["mail", "default"],
    sessions: [session],
    session: [session],
    workers: [leased?.lease ?? ""],
    tokens: [token],
    operations: [operation],
    type: ["note", "cites"],
    key: ["n-1", "n-2", "k"],
    from: ["n-1"],
    to: ["n-2"],
    name: ["work", "hear", "letter", "nightly"],
    job: ["work"],
    template: ["letter"],
    tenant: ["default"],
  };
}

async function workOff(book: Book): Promise<void> {
  const worker = await book.startWorker();
  await worker.idle();
  await worker.stop();
}

type Document = Schema & { readonly paths: Readonly<Record<string, Readonly<Record<string, Schema>>>> };

const requests = isProof ? 10_000 : 500;

for (const backend of isProof ? backends : (["sqlite"] as const)) {
  test(`${requests} requests from the document, right and wrong, fail nowhere and are answered as it says (${backend})`, async (t) => {
    t.diagnostic(`seed ${seed}`);
    const failures: unknown[] = [];
    const log = {
      info: () => undefined,
      warn: () => undefined,
      error: (said: { event?: string }) => void (said.event === "http.failed" && failures.push(said)),
    };
    // Nothing is sent and nothing runs: what is asked for stays in the book.
    const { app, book, url, tokens } = await openServer(t, backend, { worker: false, app: { log } });
    const known = await fill(url);
    const { items } = (await (await app.fetch(asked("GET", "/api/v1/jobs?limit=1", tokens.book))).json()) as Page;
    const document = (await (await app.fetch(new Request(`${origin}/api/v1/openapi.json`))).json()) as Document;
    // Its refusals are messages of another protocol.
    const paths = Object.entries(document.paths).filter(([path]) => path !== "/mcp");
    const operations = paths.flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, said]): Operation => ({ path, method: method.toUpperCase(), said })),
    );
    const counts = new Map<number, number>();
    assert.equal(items.length, 1);

    const check = async ({ operation, ...sent }: Fuzzed): Promise<void> => {
      const request = new Request(`${origin}${sent.url}`, { method: operation.method, ...sent.init });
      // From many addresses: who fails too often from one is told to wait.
      const response = await app.fetch(request, { address: sent.url });
      counts.set(response.status, (counts.get(response.status) ?? 0) + 1);
      const wrong = await judge(operation, response, document);
      assert.equal(wrong, undefined, `${operation.method} ${sent.url.slice(0, 300)}: ${response.status}: ${wrong}`);
    };
    await fc.assert(
      fc.asyncProperty(requestOf(operations, { document, known, tokens: Object.values(tokens) }), check),
      { seed, numRuns: requests, endOnFailure: true },
    );

    t.diagnostic(JSON.stringify(Object.fromEntries([...counts].toSorted())));
    assert.ok((counts.get(200) ?? 0) > requests / 10, "most of them were refused, so little was tried");
    assert.deepEqual(failures, []);
    assert.equal((await app.fetch(new Request(`${origin}/health/ready`))).status, 200);
    assert.deepEqual(await book.doctor(), []);
  });
}

type Page = { readonly items: readonly unknown[] };

function asked(method: string, path: string, token: string): Request {
  return new Request(`${origin}${path}`, { method, headers: { authorization: `Bearer ${token}` } });
}

/** What is wrong with a reply; undefined if nothing is. */
async function judge({ said }: Operation, response: Response, document: Document): Promise<string | undefined> {
  const { status, headers } = response;
  const type = headers.get("content-type")?.split(";")[0] ?? null;
  if (headers.get("x-content-type-options") !== "nosniff") return "it has not the headers of every answer";
  if (type === "text/event-stream" || type === "application/jsonl") {
    await response.body?.cancel();
    return status === 200 ? undefined : `a stream with ${status}`;
  }
  const text = await response.text();
  if (status >= 400) {
    if (type !== "application/problem+json") return `a problem as ${type}`;
    if (/\/src\/|node_modules|\bdaybook_\w+|select .* from|at file:|SQLITE|\.ts:\d/.test(text))
      return `it tells: ${text}`;
    // Who asked to wait is told that the time is up.
    if (status >= 500 && !(status === 504 && /"wait"|"timeout"/.test(JSON.stringify(said)))) return text;
    return misfit(JSON.parse(text), resolve("#/components/schemas/Problem", document), document);
  }
  const responses = said["responses"] as Record<string, Schema>;
  const found = responses[String(status)];
  if (found === undefined) return `${status} is not described`;
  const { $ref } = found as { readonly $ref?: string };
  const described = $ref === undefined ? found : resolve($ref, document);
  const content = described["content"] as Record<string, { readonly schema: Schema }> | undefined;
  if (content === undefined) return text === "" ? undefined : `a body where none is described: ${text.slice(0, 200)}`;
  const { schema } = content[type ?? ""] ?? {};
  if (schema === undefined) return `the type ${type} is not described`;
  const value: unknown = type === "application/json" ? JSON.parse(text) : text;
  const wrong = misfit(value, schema, document);
  return wrong === undefined ? undefined : `${wrong} in ${text.slice(0, 300)}`;
}
