import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo } from "node:net";
import { test, type TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { isDaybookError } from "../../src/core/error.ts";
import { forbiddenAddress, allowList, usualPorts } from "../../src/calls/client/destination.ts";
import { createAgents, type Agents, type Lookup } from "../../src/calls/client/connector.ts";
import { exchange, type Answer } from "../../src/calls/client/exchange.ts";
import { checkUrl } from "../../src/calls/request/content.ts";
import { cleanup } from "../support/open-test.ts";
import { certificate } from "./certificate.ts";
import { forbiddenAnswers, forbiddenHosts, forbiddenUrls } from "./forbidden.ts";
import { target } from "./target.ts";

type Options = {
  readonly allow?: readonly string[];
  readonly lookup?: Lookup;
  readonly ownAddresses?: () => readonly string[];
  readonly tenant?: string;
  readonly alone?: boolean;
  readonly redirects?: number;
  readonly body?: string;
  readonly ca?: readonly string[];
  readonly agents?: Agents;
};

/** Sends a request as a call would, without a book around it. */
function client(t: TestContext, options: Options): (url: string) => Promise<Answer> {
  const { allow = [], lookup, ownAddresses, redirects = 0, body, ca = [], tenant = "a", alone = false } = options;
  const agents = options.agents ?? createAgents({ lookup, ownAddresses, ca, responseBytesMax: 65_536 }, systemClock);
  if (options.agents === undefined) cleanup(t, () => agents.close());
  const list = allowList(allow);
  const headers = { authorization: "Bearer top-secret", accept: "*/*" };
  const sent = body === undefined ? null : Buffer.from(body);
  return async (url) =>
    agents.use({ tenant, origin: new URL(url).origin, allow: list, alone }, (dispatcher) =>
      exchange(
        { method: sent === null ? "GET" : "POST", url: new URL(url), headers, body: sent },
        {
          dispatcher,
          allow: list,
          ports: usualPorts,
          clock: systemClock,
          redirects,
          signal: new AbortController().signal,
          bytesMax: 1000,
          phases: {},
        },
      ),
    );
}

function isRefusal(error: unknown): boolean {
  return isDaybookError(error) && error.code === "forbidden" && error.message === "the destination is not allowed";
}

/** Listens wherever a forbidden destination could lead, and counts who comes. */
async function trap(t: TestContext): Promise<{ port: number; count(): number }> {
  let connections = 0;
  const server = createServer((socket) => {
    connections++;
    socket.on("error", () => undefined);
    // It says that it closes: whoever sends next must not take a connection that is about to end.
    socket.end("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
  });
  // All addresses of this machine, of both kinds where there are two.
  server.listen(0, "::").on("error", () => server.listen(0, "0.0.0.0"));
  await once(server, "listening");
  cleanup(t, () => server.close());
  return { port: (server.address() as AddressInfo).port, count: () => connections };
}

test("no spelling of an address that is not public is connected to", async (t) => {
  const { port, count } = await trap(t);
  const send = client(t, { lookup: () => assert.fail("an address was looked up") });

  for (const host of forbiddenHosts) {
    await assert.rejects(send(`http://${host}:${port}/`), isRefusal, host);
  }

  assert.ok(forbiddenHosts.length >= 100, `${forbiddenHosts.length} hosts`);
  assert.equal(count(), 0);
});

test("a public address is allowed in every spelling, and so is what an allow-list names", async (t) => {
  for (const address of [
    "93.184.216.34",
    "8.8.8.8",
    "1.1.1.1",
    "2606:4700::1111",
    "64:ff9b::808:808",
    "::ffff:8.8.8.8",
  ]) {
    assert.equal(forbiddenAddress(address), undefined, address);
  }
  const { port, count } = await trap(t);
  const lookup: Lookup = (_host, answer) => answer(null, [{ address: "127.0.0.1", family: 4 }]);
  for (const [allow, url] of [
    [["127.0.0.0/8"], `http://127.0.0.1:${port}/`],
    [["127.0.0.1"], `http://2130706433:${port}/`],
    [["127.0.0.1"], `http://[::ffff:127.0.0.1]:${port}/`],
    [[`localhost:${port}`], `http://LocalHost:${port}/`],
    [["127.0.0.1/32"], `http://any.example:${port}/`],
    [[`[::ffff:127.0.0.1]:${port}`], `http://[::ffff:7f00:1]:${port}/`],
  ] as const) {
    const { status } = await client(t, { allow, lookup })(url);
    assert.equal(status, 200, url);
  }
  assert.equal(count(), 6);
  for (const [allow, url] of [
    [["127.0.0.2"], `http://127.0.0.1:${port}/`],
    [[`localhost:${port + 1}`], `http://localhost:${port}/`],
    [[`127.0.0.1:${port}`], `http://localhost:${port}/`],
    [["10.0.0.0/8"], `http://localhost:${port}/`],
  ] as const) {
    await assert.rejects(client(t, { allow, lookup })(url), isRefusal, `${String(allow)} ${url}`);
  }
  assert.equal(count(), 6);
});

test("one private address among a name's answers refuses the name, wherever it stands", async (t) => {
  const { port, count } = await trap(t);
  const good = { address: "93.184.216.34", family: 4 };

  for (const address of forbiddenAnswers) {
    const bad = { address, family: address.includes(":") ? 6 : 4 };
    for (const answers of [[bad], [good, bad], [bad, good], [good, good, bad]]) {
      const send = client(t, { lookup: (_host, answer) => answer(null, answers) });
      await assert.rejects(send(`http://name.example:${port}/`), isRefusal, JSON.stringify(answers));
    }
  }
  assert.equal(count(), 0);
});

test("a name is looked up once per connection, so the address that is checked is the one that is used", async (t) => {
  const { port, count } = await trap(t);
  let asked = 0;
  // The one that is allowed when it is first asked, another one of this machine from then on.
  const lookup: Lookup = (_host, answer) =>
    answer(null, [{ address: asked++ === 0 ? "127.0.0.2" : "127.0.0.1", family: 4 }]);
  const send = client(t, { lookup, allow: ["127.0.0.2"] });

  assert.equal((await send(`http://rebinding.example:${port}/`)).status, 200);
  assert.deepEqual([asked, count()], [1, 1]);
  await assert.rejects(send(`http://rebinding.example:${port}/`), isRefusal);
  assert.deepEqual([asked, count()], [2, 1]);
});

test("a redirect is followed only if asked for, and every hop is checked like the first", async (t) => {
  const { port, count } = await trap(t);
  let location = "";
  const server = await target(t, (_request, response) => void response.writeHead(302, { location }).end());
  const allow = [`127.0.0.1:${server.port}`];
  const [staying, following] = [client(t, { allow }), client(t, { allow, redirects: 3 })];

  for (const host of forbiddenHosts.filter((each) => /^[ -~]+$/.test(each))) {
    location = `http://${host}:${port}/`;
    assert.equal((await staying(server.url)).status, 302);
    await assert.rejects(following(server.url), isRefusal, location);
  }
  for (const to of ["ftp://example.com/", "file:///etc/passwd", "http://user:pw@example.com/", `//[::1]:${port}/`]) {
    location = to;
    await assert.rejects(following(server.url), isRefusal, location);
  }
  location = "http://[";
  await assert.rejects(following(server.url), /no URL/);
  assert.equal(count(), 0);
});

test("a redirect to another origin drops credentials and refuses a body; one on the same origin keeps both", async (t) => {
  const other = await target(t);
  const server = await target(t, ({ path }, response) => {
    const location = path === "/away" ? `${other.url}/x` : path === "/home" ? "/end" : undefined;
    if (location === undefined) response.end();
    else response.writeHead(307, { location }).end();
  });
  const send = client(t, { allow: ["127.0.0.1"], redirects: 2 });

  await send(`${server.url}/away`);
  const { hops } = await send(`${server.url}/home`);

  assert.deepEqual([other.received[0]?.headers.authorization, other.received[0]?.headers.accept], [undefined, "*/*"]);
  assert.deepEqual(server.received.at(-1)?.headers.authorization, "Bearer top-secret");
  assert.deepEqual(hops, [`${server.url}/end`]);
});

test("a body is not redirected to another origin, nor anything from https to http", async (t) => {
  const other = await target(t);
  let location = `${other.url}/x`;
  const secure = await target(t, (_request, response) => void response.writeHead(308, { location }).end(), certificate);
  const send = client(t, { allow: ["127.0.0.1"], redirects: 2, body: "x", ca: [certificate.cert] });
  const plain = await target(t, (_request, response) => void response.writeHead(307, { location }).end());

  await assert.rejects(send(plain.url), /redirects a body to another origin/);
  await assert.rejects(send(secure.url), /from https to http/);
  location = "/home";
  await assert.doesNotReject(send(secure.url));

  assert.equal(other.received.length, 0);
  assert.deepEqual(
    secure.received.map(({ path, body }) => [path, body]),
    [
      ["/", "x"],
      ["/", "x"],
      ["/home", "x"],
      ["/home", "x"],
    ],
  );
});

test("an open connection is not shared with a tenant that may not reach its address", async (t) => {
  const server = await target(t);
  const lookup: Lookup = (_host, answer) => answer(null, [{ address: "127.0.0.1", family: 4 }]);
  const agents = createAgents({ lookup, ownAddresses: undefined, ca: [], responseBytesMax: 65_536 }, systemClock);
  cleanup(t, () => agents.close());
  const [inside, outside] = [client(t, { allow: ["127.0.0.1"], agents }), client(t, { allow: ["10.0.0.0/8"], agents })];
  const url = `http://name.example:${server.port}/`;

  assert.equal((await inside(url)).status, 200);
  await assert.rejects(outside(url), isRefusal);
  assert.equal((await inside(url)).status, 200);

  assert.equal(server.received.length, 2);
});

test("this machine is not reached by its own public addresses, in any spelling, unless a list names them", async (t) => {
  const own = ["93.184.216.34", "2606:4700::1111"];
  const resolving = (address: string): Lookup => {
    return (_host, answer) => answer(null, [{ address, family: address.includes(":") ? 6 : 4 }]);
  };
  const ownAddresses = (): string[] => own;
  const spellings = ["93.184.216.34", "::ffff:93.184.216.34", "64:ff9b::5db8:d822", "2606:4700:0:0::1111"];

  for (const address of spellings) {
    const literal = address.includes(":") ? `[${address}]` : address;
    await assert.rejects(client(t, { ownAddresses })(`http://${literal}:8080/`), isRefusal, address);
    const named = client(t, { ownAddresses, lookup: resolving(address) });
    await assert.rejects(named("http://name.example:8080/"), isRefusal, address);
  }
  // What the system says of itself: loopback stands for a public address here, which a list opens again.
  const server = await target(t);
  const allowed = client(t, { ownAddresses: () => ["127.0.0.1"], allow: ["127.0.0.1"] });
  assert.equal((await allowed(server.url)).status, 200);
});

test("what is public of IPv6 is 2000::/3 and nothing else", () => {
  for (const address of ["4000::1", "::8.8.8.8", "1fff:ffff::1", "8000::1", "e000::1", "200::1", "400::1"]) {
    assert.notEqual(forbiddenAddress(address), undefined, address);
  }
  for (const address of ["2400::1", "3e00::1", "2a00:1450:4001::200e"])
    assert.equal(forbiddenAddress(address), undefined);
});

test("a prefix length is digits and nothing else", () => {
  for (const bad of [
    "10.0.0.0/0x8",
    "10.0.0.0/8/9",
    "10.0.0.0/",
    "10.0.0.0/ 8",
    "10.0.0.0/8.0",
    "10.0.0.0/33",
    "10.0.0.0/-1",
  ]) {
    assert.throws(() => allowList([bad]), /is not a network/, bad);
  }
  for (const bad of ["10.0.0.0/1e1", "10.0.0.0/+8", "::/129", "example.com/8", "10.0.0.0/8\n"]) {
    assert.throws(() => allowList([bad]), { code: "invalid" }, bad);
  }
  for (const good of ["10.0.0.0/8", "::/0", "fd00::/008"]) assert.doesNotThrow(() => allowList([good]), good);
});

test("ports of other protocols are refused, and what is no URL of the web is refused by its form", async (t) => {
  const send = client(t, { lookup: () => assert.fail("a refused port was looked up") });
  for (const port of [1, 22, 25, 53, 110, 143, 389, 445, 465, 587, 993, 1023, 2049, 5060, 6000, 6667, 10080]) {
    await assert.rejects(send(`http://example.com:${port}/`), isRefusal, String(port));
  }
  for (const url of forbiddenUrls) {
    assert.throws(
      () => checkUrl(url),
      (error) => isDaybookError(error) && error.code === "invalid",
      JSON.stringify(url),
    );
  }
});

test("the proxy of the environment is not used", async (t) => {
  const { port, count } = await trap(t);
  for (const name of ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "ALL_PROXY"]) {
    const before = process.env[name];
    process.env[name] = `http://127.0.0.1:${port}`;
    cleanup(t, () => (before === undefined ? delete process.env[name] : (process.env[name] = before)));
  }
  const server = await target(t);

  await client(t, { allow: [server.host] })(server.url);

  assert.deepEqual([server.received.length, count()], [1, 0]);
});
