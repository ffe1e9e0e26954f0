// A server behind a real port, and callers that write bytes of their own: what is no request, what two readers would read in two ways,
// and what never ends.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { test, type TestContext } from "node:test";
import { listen } from "../../src/server/listen.ts";
import { cleanup } from "../support/open-test.ts";
import { openServer, type TestServer } from "../support/open-server.ts";

type Listening = TestServer & { readonly port: number; readonly headers: string };

async function openPort(t: TestContext): Promise<Listening> {
  const server = await openServer(t, "sqlite");
  const { url, close } = await listen(server.app, { port: 0 });
  cleanup(t, () => close(0));
  const headers = `Host: 127.0.0.1\r\nAuthorization: Bearer ${server.tokens.operate}\r\n`;
  return { ...server, port: Number(new URL(url).port), headers };
}

type Said = { readonly status: number; readonly headers: string; readonly body: string };

/** Writes the bytes and reads what is answered, until `count` answers are whole or the connection has ended. */
async function say(port: number, bytes: string, count = 1): Promise<Said[]> {
  const socket = connect(port, "127.0.0.1");
  await once(socket, "connect");
  // A connection that was cut is what some of them are told.
  socket.on("error", () => undefined);
  socket.write(Buffer.from(bytes, "latin1"));
  let text = "";
  for await (const chunk of socket.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    text += chunk.toString("latin1");
    if (answersOf(text).length >= count) break;
  }
  socket.destroy();
  return answersOf(text);
}

function answersOf(text: string): Said[] {
  const answers: Said[] = [];
  for (let rest = text; rest !== "";) {
    const end = rest.indexOf("\r\n\r\n");
    if (end === -1) break;
    const headers = rest.slice(0, end).toLowerCase();
    const length = Number(/content-length: (\d+)/.exec(headers)?.[1] ?? 0);
    if (rest.length < end + 4 + length) break;
    const status = Number(headers.slice(9, 12));
    answers.push({ status, headers, body: rest.slice(end + 4, end + 4 + length) });
    rest = rest.slice(end + 4 + length);
  }
  return answers;
}

function assertProblem(said: Said | undefined, status: number, what: string): void {
  assert.equal(said?.status, status, `${what}: ${said?.headers} ${said?.body}`);
  assert.match(said.headers, /content-type: application\/problem\+json/, what);
  assert.match(said.headers, /content-security-policy: default-src 'none'/, what);
  assert.equal((JSON.parse(said.body) as { status: number }).status, status, what);
}

test("what is no request, or could be read as two, is refused as a problem and its connection ends", async (t) => {
  const { port, headers } = await openPort(t);
  const post = `POST /api/v1/jobs HTTP/1.1\r\n${headers}Content-Type: application/json\r\n`;
  const forms: Readonly<Record<string, readonly [bytes: string, status: number]>> = {
    "an unknown method": [`BREW /api/v1/jobs HTTP/1.1\r\n${headers}\r\n`, 400],
    "a hello of TLS": ["\u0016\u0003\u0001\u0002\u0000\u0001\u0000\u0001\u00fc\u0003\u0003", 400],
    "a preface of HTTP/2": ["PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400],
    "lines that end in a line feed alone": ["GET /health/live HTTP/1.1\nHost: 127.0.0.1\n\n", 400],
    "two lengths": [`${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} `, 400],
    "a negative length": [`${post}Content-Length: -1\r\n\r\n{}`, 400],
    "a length and chunks": [`${post}Content-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nG`, 400],
    "two encodings": [`${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n`, 400],
    "an unknown encoding": [`${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n`, 400],
    "a chunk without a length": [`${post}Transfer-Encoding: chunked\r\n\r\nZZ\r\n{}\r\n0\r\n\r\n`, 400],
    "a folded header": [`GET /health/live HTTP/1.1\r\n${headers}X: a\r\n b\r\n\r\n`, 400],
    "a header with NUL": [`GET /health/live HTTP/1.1\r\n${headers}X: a\u0000b\r\n\r\n`, 400],
    "a path of raw bytes": [`GET /api/v1/jobs/\u00ff\u00fe HTTP/1.1\r\n${headers}\r\n`, 400],
    "a long header": [`GET /health/live HTTP/1.1\r\n${headers}X: ${"a".repeat(20_000)}\r\n\r\n`, 431],
    "a flood of headers": [`GET /health/live HTTP/1.1\r\n${headers}${"a:\r\n".repeat(5000)}\r\n`, 431],
    "HTTP/1.0 without a host": ["GET /health/live HTTP/1.0\r\n\r\n", 400],
    "HTTP/1.1 without a host": ["GET /health/live HTTP/1.1\r\n\r\n", 400],
    "a host with a path": ["GET /health/live HTTP/1.1\r\nHost: 127.0.0.1/x\r\n\r\n", 400],
    "a host with a user": ["GET /health/live HTTP/1.1\r\nHost: a@127.0.0.1\r\n\r\n", 400],
    "an impossible port": ["GET /health/live HTTP/1.1\r\nHost: 127.0.0.1:99999999\r\n\r\n", 400],
    "two hosts": ["GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\nHost: evil.example\r\n\r\n", 403],
    "a foreign host": ["GET /health/live HTTP/1.1\r\nHost: evil.example\r\n\r\n", 403],
    "an address of another host": ["GET http://evil.example/health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 403],
    "no path": [`OPTIONS * HTTP/1.1\r\n${headers}\r\n`, 400],
    "two tokens": [`GET /api/v1/jobs HTTP/1.1\r\n${headers}Authorization: Bearer x\r\n\r\n`, 401],
    "two cookies": [
      "GET /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nCookie: daybook_login=a\r\nCookie: daybook_login=b\r\n\r\n",
      401,
    ],
    TRACE: [`TRACE /api/v1/jobs HTTP/1.1\r\n${headers}\r\n`, 405],
    OPTIONS: [`OPTIONS /api/v1/jobs HTTP/1.1\r\n${headers}\r\n`, 405],
  };

  for (const [what, [bytes, status]] of Object.entries(forms)) {
    const said = await say(port, bytes);
    assertProblem(said[0], status, what);
    if (status === 400) assert.equal(said.length, 1, what);
  }
  assert.equal((await say(port, "GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"))[0]?.status, 200);
});

test("requests that stand one behind the other are answered one by one, and a body is never read as a request", async (t) => {
  const { port, headers, book } = await openPort(t);
  const live = "GET /health/live HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n";
  const within = (head: string): string => `${head}Content-Length: ${live.length}\r\n\r\n${live}`;

  const piped = await say(port, live.repeat(20), 20);
  const inGet = await say(port, within(`GET /api/v1/jobs HTTP/1.1\r\n${headers}`) + live, 2);
  const refused = await say(
    port,
    within(`POST /api/v1/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n`) + live,
    2,
  );
  const awaited = await say(
    port,
    `POST /api/v1/jobs HTTP/1.1\r\n${headers}Expect: tea\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n{"name":"x"}`,
  );

  assert.deepEqual(
    piped.map(({ status }) => status),
    Array.from({ length: 20 }, () => 200),
  );
  assert.deepEqual(
    inGet.map(({ body }) => body),
    ['{"items":[],"next":null}', '{"status":"live"}'],
  );
  assert.deepEqual(
    refused.map(({ status }) => status),
    [401, 200],
  );
  assert.equal(awaited[0]?.status, 200);
  assert.equal((await book.jobs.list()).items.length, 1);
});

test("a change that needs no body is asked for without one", async (t) => {
  const { port, headers, json } = await openPort(t);
  const { id } = await json<{ id: string }>("POST", "/jobs", { body: { name: "x" } });
  const cancel = `POST /api/v1/jobs/${id}/cancel HTTP/1.1\r\n${headers}`;

  const chunked = await say(port, `${cancel}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`);
  const bare = await say(port, `${cancel}\r\n`);
  const again = await say(port, `${cancel}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n`);

  assertProblem(chunked[0], 415, "a body of no named type");
  assert.equal(bare[0]?.status, 200);
  assertProblem(again[0], 409, "it has ended");
});

test("HEAD opens no stream and uses up no link", async (t) => {
  const { port, headers, app, ask, tokens } = await openPort(t);
  const link = `/login/${await app.link()}`;
  const head = async (path: string): Promise<Said | undefined> =>
    (await say(port, `HEAD ${path} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`))[0];

  for (const path of ["/api/v1/stream", "/api/v1/event-stream", link]) {
    const said = await head(path);
    assert.equal(said?.status, 405, path);
    assert.match(said.headers, /^allow: get\r?$/m);
  }

  const metrics = await app.fetch(
    new Request("http://127.0.0.1/metrics", { headers: { authorization: `Bearer ${tokens.read}` } }),
  );
  assert.match(await metrics.text(), /^daybook_server_streams 0$/m);
  assert.equal((await head("/api/v1/jobs"))?.status, 200);
  assert.equal((await ask("GET", link, { token: "" })).status, 303);
});
