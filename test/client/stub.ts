// A server that answers as a test says, and remembers what it was asked.
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";

export type Seen = {
  readonly line: string;
  readonly headers: IncomingMessage["headers"];
  readonly body: string;
};

type Answer = (response: ServerResponse, seen: Seen, count: number) => unknown;

export type Stub = { readonly url: string; readonly seen: readonly Seen[] };

/** Each request is answered by the next of `answers`, the last one again and again. */
export async function stub(t: TestContext, ...answers: readonly Answer[]): Promise<Stub> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const asked = { line: `${request.method} ${request.url}`, headers: request.headers, body };
      seen.push(asked);
      return (answers[seen.length - 1] ?? answers.at(-1))?.(response, asked, seen.length);
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  return (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));
}

export function problem(status: number, code: string, headers: Record<string, string> = {}, details?: unknown): Answer {
  const said = { title: code, status, code, detail: `it is ${code}`, details };
  return json(said, status, { "content-type": "application/problem+json", ...headers });
}

/** Answers with this text of server-sent events and stays open, or ends. */
export function events(text: string, how: "open" | "ended" | "broken"): Answer {
  return (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(text, () => {
      if (how === "ended") response.end();
      if (how === "broken") response.destroy();
    });
  };
}
