// Who we are to a server, against real ones: each way is refused while it is wrong, and what waited arrives once it is right.
import assert from "node:assert/strict";
import { nkeys } from "@nats-io/transport-node";
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { describe, test, type TestContext } from "node:test";
import { inspect } from "node:util";
import { nats, sink, type NatsOptions } from "../../src/index.ts";
import { openCalls, workAll } from "../calls/target.ts";
import { runCli } from "../cli/run-cli.ts";
import { allText } from "../support/book-text.ts";
import { backends } from "../support/open-test.ts";
import { accounts, seedOf } from "./accounts.ts";
import { authority } from "./certificates.ts";
import { natsServer, withNats, type NatsServer } from "./nats-server.ts";
import { secureServer } from "./secure-server.ts";

type Way = {
  readonly name: string;
  readonly server: Parameters<typeof natsServer>[1];
  readonly right: Partial<NatsOptions>;
  readonly wrong: Partial<NatsOptions>;
  readonly said: RegExp;
};

const canary = "kanarie-8d21f0";
const refused = /^the NATS server at 127\.0\.0\.1:\d+ refused us \(.*Authorization.*\): check "auth" of nats\(\)$/i;

function byToken(): Way {
  const token = `${canary}-token`;
  return {
    name: "token",
    right: { auth: { token } },
    wrong: { auth: { token: `${canary}-no-token` } },
    said: refused,
    server: { config: `authorization { token: "${token}" }`, client: { token } },
  };
}

function byPassword(): Way {
  const [user, pass] = ["shop", `${canary}-password`];
  return {
    name: "password",
    right: { auth: { user, password: pass } },
    said: refused,
    wrong: { auth: { user, password: `${canary}-no-password` } },
    server: { config: `authorization { users: [{ user: "${user}", password: "${pass}" }] }`, client: { user, pass } },
  };
}

function byNkey(): Way {
  const [ours, other] = [nkeys.createUser(), nkeys.createUser()];
  const config = `authorization { users: [
    { user: "boss", password: "boss" }, { nkey: "${ours.getPublicKey()}" } ] }`;
  return {
    // As it is read from a file, with the end of its line.
    name: "nkey",
    right: { auth: { nkey: `${seedOf(ours)}\n` } },
    wrong: { auth: { nkey: seedOf(other) } },
    server: { config, client: { user: "boss", pass: "boss" } },
    said: refused,
  };
}

function byCredentials(): Way {
  const [ours, others] = [accounts(), accounts()];
  return {
    // As it is on Windows.
    name: "credentials",
    right: { auth: { credentials: ours.user().replaceAll("\n", "\r\n") } },
    said: refused,
    wrong: { auth: { credentials: others.user() } },
    server: { config: ours.config, client: { authenticator: ours.authenticator() } },
  };
}

/** Both sides show a certificate, and the server lets nobody in without one that it knows. */
function byCertificate(t: TestContext): Way {
  const [ours, others] = [authority("ours"), authority("others")];
  const { ca } = ours;
  const client = { ca, ...ours.issue("shop") };
  return {
    name: "certificate",
    right: { tls: client },
    wrong: { tls: { ca, ...others.issue("shop") } },
    // Whether the server's reason arrives before the end of the connection does is up to the two kernels.
    said: /^(?:TLS with the NATS server at .* failed|no NATS server answers at .*"tls", which it may want$)/,
    server: secureServer(t, ours, { client }),
  };
}

/** Whatever of it would give somebody else a way in. */
function secretsIn({ right, wrong }: Way): string[] {
  const texts = [right, wrong].flatMap(({ auth, tls }) => [
    ...Object.values(auth ?? {}),
    ...(typeof tls === "object" ? [tls.key ?? ""] : []),
  ]);
  // A key is many lines, of which none may be shown.
  return texts.flatMap((text) => text.split(/[\r\n.]+/)).filter((line) => line.length > 12 && !line.includes("---"));
}

const sinkOf = ({ name }: Way, { url }: NatsServer, options: Partial<NatsOptions>): ReturnType<typeof sink> =>
  sink(name, { on: "a.*", backoff: ["1s"], to: nats({ servers: url, ...options }) });

withNats(() => {
  for (const backend of backends) {
    describe(backend, () => {
      test("by token, password, nkey, credentials and certificate: what is wrong is refused and tried again, and arrives once it is right", async (t) => {
        const said: unknown[] = [];
        const hear = (message: unknown): void => void said.push(message);
        for (const channel of ["daybook:job.settled", "daybook:jobs.claimed", "daybook:event.published"]) {
          subscribe(channel, hear);
          t.after(() => unsubscribe(channel, hear));
        }
        for (const method of ["log", "info", "error"] as const) t.mock.method(console, method, hear);
        const ways = [byToken(), byPassword(), byNkey(), byCredentials(), byCertificate(t)];
        const pairs = await Promise.all(
          ways.map(async (way) => {
            const server = await natsServer(t, way.server);
            await server.stream("ALL", "a.>");
            return { way, server };
          }),
        );

        const use = pairs.map(({ way, server }) => sinkOf(way, server, way.wrong));
        const { book, url } = await openCalls(t, backend, { views: true, use });
        await book.events.publish("a.b", { n: 1 }, { key: "k" });
        await workAll(book);

        const { items } = await book.runs.list({ status: "error" });
        assert.equal(items.length, ways.length);
        for (const { name, said: wanted } of ways) {
          const run = items.find((each) => each.name === `listener:sink:${name}`);
          assert.match(run?.error?.message ?? "", wanted, name);
        }
        assert.deepEqual((await book.deadLetters.list()).items, []);
        for (const { server } of pairs) assert.deepEqual(await server.messages("ALL"), []);

        await book.close();
        const again = await openCalls(t, backend, {
          views: true,
          url,
          use: pairs.map(({ way, server }) => sinkOf(way, server, way.right)),
        });
        again.clock.step(60_000);
        await workAll(again.book);

        for (const { way, server } of pairs) {
          const subjects = (await server.messages("ALL")).map(({ subject }) => subject);
          assert.deepEqual(subjects, ["a.b"], way.name);
        }
        const { items: done } = await again.book.runs.list({ status: "success" });
        const tries = Object.fromEntries(
          done.map(({ name, attempt }) => [name.replace("listener:sink:", ""), attempt]),
        );
        // With the wrong certificate nobody was reached, which is not counted.
        assert.deepEqual(tries, { token: 2, password: 2, nkey: 2, credentials: 2, certificate: 1 });
        // The command line reads the same tables on both, and each of its runs is a process.
        const lists = backend === "sqlite" ? [["sinks", "list"], ["runs", "list"], ["errors"]] : [];
        const printed = await Promise.all(lists.map((args) => runCli([...args, "--json", "--book", url])));
        for (const { code, stderr } of printed) assert.equal(code, 0, stderr);
        const whole = [
          ...[await allText(again.book, backend), inspect(said, { depth: 9, maxStringLength: null })],
          ...[inspect(use, { depth: 9 }), JSON.stringify(items), JSON.stringify(await again.book.sinks.list())],
          ...printed.map(({ stdout, stderr }) => stdout + stderr),
        ].join("\n");
        assert.ok(whole.includes("refused us") && said.length > 0, "what is looked for would be found");
        for (const way of ways) {
          const secrets = secretsIn(way);
          assert.ok(secrets.length >= 2, way.name);
          for (const secret of secrets) assert.ok(!whole.includes(secret), way.name);
        }
      });
    });
  }
});

test("a seed of which a letter is wrong is said to be so, and is no server that is away", async () => {
  const [seed, user] = [seedOf(nkeys.createUser()), accounts().user()];
  // In the middle: of the last letter some bits mean nothing.
  const spoilt = (text: string): string =>
    text.replace(
      /(SU[A-Z2-7]{28})(.)(?=[A-Z2-7]{27}\b)/,
      (_all, before: string, letter: string) => before + (letter === "A" ? "B" : "A"),
    );
  const message = { specversion: "1.0", id: "1", source: "s", type: "a.b", time: "", data: {} } as const;
  for (const auth of [{ nkey: spoilt(seed) }, { credentials: spoilt(user) }]) {
    const { broker } = nats({ servers: "nats://127.0.0.1:1", auth });
    const sent = broker.publish(
      { ...message, datacontenttype: "application/json" },
      { signal: new AbortController().signal, tenant: "default", messageId: "1" },
    );
    await assert.rejects(sent, { code: "invalid", message: "the seed in auth of nats() is not whole: copy it again" });
  }
});
