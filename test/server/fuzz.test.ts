// Requests that are made from the document of the API, right ones and wrong ones: none of them is a failure of the server, and every
// reply is what the document says.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Schema } from "../../src/verbs/field.ts";
import { backends } from "../support/open-test.ts";
import { openServer, origin } from "../support/open-server.ts";
import { misfit, resolve } from "../support/json-schema.ts";
import { fc, isProof, seed } from "../support/property.ts";
import { fillServed } from "../support/served-world.ts";
import { requestOf, type Fuzzed, type Operation } from "../support/requests-of.ts";

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
    const known = await fillServed(url);
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

    t.diagnostic(JSON.stringify(Object.fromEntries([...counts].toSorted(([a], [b]) => a - b))));
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
