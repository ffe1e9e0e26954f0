// TLS to real servers. The certificates are made by the test itself, and no other tool is needed.
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type AddressInfo, type Server, type Socket } from "node:net";
import { createServer as createSecureServer } from "node:tls";
import { test, type TestContext } from "node:test";
import { nats, sink, type Book } from "../../src/index.ts";
import { openCalls, workAll } from "../calls/target.ts";
import { cleanup } from "../support/open-test.ts";
import { authority } from "./certificates.ts";
import { natsServer, withNats } from "./nats-server.ts";
import { secureServer } from "./secure-server.ts";

type Targets = Readonly<Record<string, ReturnType<typeof nats>>>;

/** A book with a sink for each, to which one event was tried to be delivered. */
async function tried(t: TestContext, targets: Targets): Promise<Book> {
  const use = Object.entries(targets).map(([name, to]) => sink(name, { on: "a.*", attempts: 1, to }));
  const { book } = await openCalls(t, "sqlite", { views: true, use });
  await book.events.publish("a.b", {}, { key: "k" });
  await workAll(book);
  return book;
}

/** What they failed with, by name. */
async function failures(book: Book): Promise<Record<string, string>> {
  const { items } = await book.runs.list({ status: "error" });
  return Object.fromEntries(items.map(({ name, error }) => [name.replace("listener:sink:", ""), `${error?.message}`]));
}

async function listen(t: TestContext, server: Server): Promise<string> {
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(t, () => void server.close());
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

withNats(() => {
  test("a server's certificate must be signed by somebody we trust, and for the address or name that was given", async (t) => {
    const [ours, others] = [authority("ours"), authority("others")];
    const byAddress = await natsServer(t, secureServer(t, ours));
    const byName = await natsServer(t, secureServer(t, ours, { holder: "localhost" }));
    for (const server of [byAddress, byName]) await server.stream("ALL", "a.>");
    const nameOf = (url: string): string => url.replace("127.0.0.1", "localhost");
    const tls = { ca: ours.ca };

    const book = await tried(t, {
      address: nats({ servers: byAddress.url, tls }),
      scheme: nats({ servers: byAddress.url.replace("nats:", "tls:"), tls, subject: "a.scheme" }),
      name: nats({ servers: nameOf(byName.url), tls }),
      "not asked for": nats({ servers: byAddress.url }),
      "of all authorities": nats({ servers: byAddress.url, tls: true }),
      "of another authority": nats({ servers: byAddress.url, tls: { ca: others.ca } }),
      "for a name": nats({ servers: byName.url, tls }),
      "for an address": nats({ servers: nameOf(byAddress.url), tls }),
    });

    const said = await failures(book);
    const untrusted =
      /^TLS with the NATS server at 127\.0\.0\.1:\d+ failed \(unable to .* certificate.*\): check "tls"/;
    assert.deepEqual(Object.keys(said).toSorted(), [
      ...["for a name", "for an address", "not asked for", "of all authorities", "of another authority"],
    ]);
    for (const name of ["not asked for", "of all authorities", "of another authority"]) {
      assert.match(said[name] ?? "", untrusted, name);
    }
    assert.match(said["for a name"] ?? "", /^TLS .* failed \(IP: 127\.0\.0\.1 is not in the cert's list.*\): check/);
    assert.match(said["for an address"] ?? "", /^TLS .* failed \(Host: localhost\. is not .*\): check/);
    // Nothing was sent, so nothing was counted.
    assert.deepEqual((await book.deadLetters.list()).items, []);
    const subjects = (await byAddress.messages("ALL")).map(({ subject }) => subject);
    assert.deepEqual(subjects.toSorted(), ["a.b", "a.scheme"]);
    assert.equal((await byName.messages("ALL")).length, 1);
  });

  test("who asks for TLS says nothing to a server without it, least of all a token", async (t) => {
    const server = await natsServer(t, { config: `authorization { token: "t" }`, client: { token: "t" } });
    await server.stream("ALL", "a.>");
    let heard = "";
    const plain = createServer((socket) => {
      socket.write('INFO {"server_id":"x","version":"2.9.10","proto":1,"max_payload":1000,"headers":true}\r\n');
      socket.on("data", (bytes: Buffer) => (heard += bytes.toString()));
      socket.on("error", () => undefined);
    });
    const auth = { token: "t" };

    const book = await tried(t, {
      option: nats({ servers: server.url, auth, tls: true }),
      scheme: nats({ servers: server.url.replace("nats:", "tls:"), auth }),
      other: nats({ servers: await listen(t, plain), auth, tls: true }),
    });

    const said = Object.values(await failures(book));
    assert.equal(said.length, 3);
    for (const text of said) assert.match(text, /^the NATS server at \S+ has no TLS, so nothing was said to it: give/);
    assert.deepEqual([await server.messages("ALL"), heard], [[], ""]);
  });

  test("a server that begins with TLS, or says nothing at all, is given up and leaves no socket behind", async (t) => {
    const ours = authority("ours");
    const ends: Promise<unknown>[] = [];
    const note = (socket: Socket): void => {
      socket.on("error", () => undefined).resume();
      ends.push(once(socket, "close"));
      cleanup(t, () => socket.destroy());
    };
    const first = createSecureServer(ours.issue("127.0.0.1")).on("connection", note);
    const mute = createServer(note);
    // It begins well, and stops when TLS is to be agreed upon.
    const half = createServer(note).on("connection", (socket: Socket) => {
      socket.write('INFO {"server_id":"x","version":"2.9.10","proto":1,"max_payload":1000,"tls_required":true}\r\n');
    });

    const book = await tried(t, {
      first: nats({ servers: await listen(t, first), timeout: "200ms" }),
      mute: nats({ servers: await listen(t, mute), tls: true, timeout: "200ms" }),
      half: nats({ servers: await listen(t, half), timeout: "200ms" }),
    });

    const said = Object.values(await failures(book));
    assert.equal(said.length, 3);
    for (const text of said) assert.match(text, /^no NATS server answers at 127\.0\.0\.1:\d+ \(timeout\): start it/);
    assert.equal(ends.length, 3);
    await Promise.all(ends);
  });
});

test("certificates and credentials that cannot be read are refused where they are written, and are not shown", () => {
  const servers = "nats://127.0.0.1:4222";
  const [ours, others] = [authority("ours"), authority("others")];
  const { cert } = ours.issue("shop");
  const seed = `SU${"A".repeat(55)}`;
  const refused: readonly (readonly [Partial<Parameters<typeof nats>[0]>, RegExp])[] = [
    [{ tls: { ca: "geheim/ca.pem" } }, /^nats tls\.ca cannot be read: give the text of the file in PEM/],
    [{ tls: { cert, key: "geheim" } }, /^nats tls\.cert and tls\.key cannot be read, or are no pair/],
    [{ tls: { cert, key: others.issue("geheim").key } }, /^nats tls\.cert and tls\.key cannot be read, or are no pair/],
    [{ tls: { cert } }, /^nats tls has one of cert and key: give both/],
    [{ tls: { caFile: "x" } as never }, /unknown option "caFile" for nats\.tls/],
    [{ tls: "yes" as never }, /^nats tls is "yes": give true, or/],
    [{ tls: false, servers: "tls://127.0.0.1" }, /is given as "tls:\/\/", and tls is false/],
    [{ auth: { nkey: "geheim" } }, /^nats auth\.nkey is no seed of a user: 58 letters/],
    [{ auth: { nkey: seed } }, /^nats auth\.nkey is no seed/],
    [{ auth: { credentials: "geheim.creds" } }, /^nats auth\.credentials has no JWT .* not its name$/],
    [{ auth: { credentials: `---\ngeheim\n---\n---\n${seed}\n---\n` } }, /^nats auth\.credentials has no JWT/],
    [{ auth: { token: "geheim", user: "ada" } }, /^nats auth is \{ token \}/],
    [{ auth: { passwort: "geheim" } as never }, /did you mean "password"/],
  ];
  for (const [options, wanted] of refused) {
    assert.throws(
      () => nats({ servers, ...options }),
      (error: Error) => {
        assert.match(error.message, wanted);
        assert.doesNotMatch(`${error.message} ${String(error.cause)}`, /geheim|AAAA/);
        return true;
      },
    );
  }
});
