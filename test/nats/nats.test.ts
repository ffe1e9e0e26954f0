import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { nats, sink, type Book, type CloudEvent, type ManualClock } from "../../src/index.ts";
import { openCalls, workAll } from "../calls/target.ts";
import { backends } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";
import { natsServer, withNats } from "./nats-server.ts";

const out = async (book: Book): Promise<(number | null)[]> => {
  const rows = await book.read(
    (tx) => tx.sql<{ at: number | null }>`select published_at as at from outbox order by id`,
  );
  return rows.map(({ at }) => (at === null ? null : Number(at)));
};

/** The text of what the last run of a sink failed with. */
const failure = async (book: Book): Promise<string> => {
  const { items } = await book.runs.list({ status: "error" });
  return `${items[0]?.error?.message}`;
};

/** However slow the machine is just now. */
const untilOut = async (book: Book, clock: ManualClock): Promise<void> => {
  while ((await out(book)).includes(null)) {
    await workAll(book);
    clock.step(60_000);
  }
};

withNats(() => {
  for (const backend of backends) {
    describe(backend, () => {
      test("a stream has each event once, in the order of its key, as a CloudEvent under a stable id", async (t) => {
        const server = await natsServer(t);
        await server.stream("SHOP", "shop.>");
        const orders = sink("orders", {
          on: "order.*",
          to: nats({ servers: server.url, subject: "shop.{tenant}.{topic}", stream: "SHOP" }),
        });
        const { book, clock } = await openCalls(t, backend, { views: true, use: [orders] });
        const ids: string[] = [];
        for (const n of [1, 2, 3]) ids.push((await book.events.publish("order.paid", { n }, { key: "o-1" })).id);
        await workAll(book);

        const messages = await server.messages("SHOP");
        assert.deepEqual(
          messages.map(({ subject, header }) => [subject, header.get("Nats-Msg-Id"), header.get("content-type")]),
          ids.map((id) => ["shop.default.order.paid", `orders/default/${id}`, "application/cloudevents+json"]),
        );
        const { time: _time, ...first } = messages[0]?.json<CloudEvent>() ?? { time: "" };
        assert.deepEqual(first, {
          specversion: "1.0",
          id: ids[0],
          source: "daybook:default",
          type: "order.paid",
          subject: "o-1",
          datacontenttype: "application/json",
          data: { n: 1 },
        });
        assert.deepEqual(await out(book), [clock.now(), clock.now(), clock.now()]);

        // Once more from the beginning: the same ids, which the stream knows.
        await book.listeners.rewind("sink:orders", "beginning");
        await workAll(book);
        assert.equal((await server.messages("SHOP")).length, 3);
      });

      test("a server that is away costs no attempt: what waits goes out in order when it is back", async (t) => {
        const server = await natsServer(t);
        await server.stream("SHOP", "order.>");
        const orders = sink("orders", { on: "order.*", attempts: 1, to: nats({ servers: server.url }) });
        const { book, clock } = await openCalls(t, backend, { views: true, use: [orders] });
        await book.events.publish("order.paid", { n: 0 }, { key: "o-1" });
        await workAll(book);
        await server.kill();

        for (const n of [1, 2]) await book.events.publish("order.paid", { n }, { key: "o-1" });
        for (let tries = 0; tries < 3; tries++) {
          await workAll(book);
          clock.step(1000);
        }
        assert.match(
          await failure(book),
          /^no NATS server answers at 127\.0\.0\.1:\d+ \(.*\): start it, or correct "servers"/,
        );
        assert.deepEqual((await book.deadLetters.list()).items, []);
        assert.deepEqual((await out(book)).slice(1), [null, null]);

        await server.start();
        clock.step(60_000);
        await workAll(book);
        const messages = await server.messages("SHOP");
        assert.deepEqual(
          messages.map((message) => message.json<CloudEvent>().data),
          [{ n: 0 }, { n: 1 }, { n: 2 }],
        );
      });
    });
  }

  test("a server that does not answer is given up after a while; what it took in meanwhile is not there twice", async (t) => {
    const server = await natsServer(t);
    await server.stream("ALL", "a.>");
    const all = sink("all", {
      on: "a.*",
      attempts: 1000,
      backoff: ["1s"],
      to: nats({ servers: server.url, timeout: "300ms" }),
    });
    const { book, clock } = await openCalls(t, "sqlite", { views: true, use: [all] });
    for (const key of ["a", "b"]) await book.events.publish("a.first", {}, { key });
    await untilOut(book, clock);
    await server.signal("SIGSTOP");
    for (const topic of ["a.b", "a.c"]) await book.events.publish(topic, {}, { key: "k" });
    await workAll(book);
    assert.match(await failure(book), /^"a\.b" was not acknowledged within 300 ms: it may be in the stream$/);
    clock.step(1000);
    await workAll(book);
    // A process that is stopped takes connections in, and says nothing.
    assert.match(await failure(book), /^no NATS server answers at/);
    await server.signal("SIGCONT");
    await untilOut(book, clock);

    assert.deepEqual(
      (await server.messages("ALL")).map(({ subject }) => subject),
      ["a.first", "a.first", "a.b", "a.c"],
    );
  });

  test("two tenants and two sinks with the same event id lose nothing to a stream that drops repeats", async (t) => {
    const server = await natsServer(t);
    await server.stream("ALL", "a.>", "b.>");
    const to = (prefix: string): ReturnType<typeof nats> =>
      nats({ servers: [server.url], subject: `${prefix}.{tenant}.{topic}` });
    const { book } = await openCalls(t, "sqlite", {
      views: true,
      use: [
        sink("one", { on: "x.y", tenants: "all", to: to("a") }),
        sink("two", { on: "x.y", tenants: "all", to: to("b") }),
      ],
    });
    // Ids of the program's own, of which one looks like another's message id.
    for (const tenant of ["default", "acme"]) {
      for (const id of ["é 1\n", "acme/1", "1"]) await book.tenant(tenant).events.publish("x.y", {}, { id });
    }
    await workAll(book);

    const messages = await server.messages("ALL");
    const said = messages.map((message) => `${message.subject} ${message.json<CloudEvent>().id}`);
    const wanted = ["a.default", "b.default", "a.acme", "b.acme"].flatMap((subject) =>
      ["é 1\n", "acme/1", "1"].map((id) => `${subject}.x.y ${id}`),
    );
    assert.deepEqual(said.toSorted(), wanted.toSorted());
  });

  test("what stands in the way is said: no stream, another stream, no permission, who we are, too big", async (t) => {
    const config = `authorization { users: [
      { user: "boss", password: "b-secret" },
      { user: "small", password: "s-secret", permissions: { publish: ["ok.>", "$JS.>"], subscribe: ">" } }
    ] }\nmax_payload: 2000`;
    const server = await natsServer(t, { config, client: { user: "boss", pass: "b-secret" } });
    await server.stream("OK", "ok.>", "no.>");
    const servers = server.url;
    const auth = { user: "small", password: "s-secret" };
    const cases = [
      [
        nats({ servers, auth, subject: "ok.nobody.{topic}", stream: "OTHER" }),
        /belongs to another stream than "OTHER"/,
      ],
      [nats({ servers, auth: { user: "boss", password: "b-secret" } }), /no stream takes the subject "a\.b": make one/],
      [nats({ servers, auth, subject: "no.{topic}" }), /does not let us publish "no\.a\.b"/],
      [nats({ servers, auth: { user: "small", password: "wrong" } }), /refused us \(.*uthorization.*\): check "auth"/i],
      [nats({ servers }), /refused us .* check "auth"/],
      [nats({ servers, auth, subject: () => "a b" }), /nats subject "a b" is none/],
    ] as const;
    const big = sink("big", { on: "a.big", to: nats({ servers, auth, subject: "ok.x" }) });
    const use = cases.map(([to], index) => sink(`case-${index}`, { on: "a.b", attempts: 1, to }));
    const { book } = await openCalls(t, "sqlite", { views: true, use: [...use, big] });
    await book.events.publish("a.b", {});
    await book.events.publish("a.big", { text: "x".repeat(2000) });
    await workAll(book);

    const { items } = await book.deadLetters.list();
    const said = new Map(items.map(({ listener, error }) => [listener, error.message]));
    cases.forEach(([, wanted], index) => {
      const text = said.get(`sink:case-${index}`) ?? "";
      assert.match(text, wanted);
      assert.doesNotMatch(text, /secret|wrong/);
    });
    // That will not be otherwise the next time.
    assert.match(said.get("sink:big") ?? "", /too big for the NATS server: raise its max_payload/);
  });

  test("its connection ends with the last book that used it, and the next book connects anew", async (t) => {
    const server = await natsServer(t);
    await server.stream("ALL", "a.>");
    const all = sink("all", { on: "a.*", to: nats({ servers: server.url }) });
    const first = await openCalls(t, "sqlite", { views: true, use: [all] });
    const second = await openCalls(t, "sqlite", { views: true, use: [all] });
    for (const { book } of [first, second]) {
      await book.events.publish("a.b", {});
      await workAll(book);
    }
    assert.equal(await server.connections(), 1);
    await first.book.close();
    assert.equal(await server.connections(), 1, "the other book uses it");
    await second.book.events.publish("a.c", {});
    await workAll(second.book);
    await second.book.close();
    // The server hears of it a moment later.
    await until("it is gone", async () => ((await server.connections()) === 0 ? true : undefined));
    const third = await openCalls(t, "sqlite", { views: true, use: [all] });
    await third.book.events.publish("a.d", {});
    await workAll(third.book);

    assert.deepEqual(
      (await server.messages("ALL")).map(({ subject }) => subject),
      ["a.b", "a.b", "a.c", "a.d"],
    );
  });
});

test("what nats() cannot be is refused where it is written, and no secret is shown", () => {
  const servers = "nats://127.0.0.1:4222";
  const refused: readonly (readonly [() => unknown, RegExp])[] = [
    [() => nats({ servers: [] }), /no servers/],
    [() => nats({ servers: "http://x" }), /cannot be read: write "nats:\/\/host:port"/],
    [() => nats({ servers: "nats://ada:geheim@x" }), /^(?!.*geheim).*give it as auth/],
    [() => nats({ servers: "http://ada:geheim@x" }), /^(?!.*geheim).*cannot be read/],
    [() => nats({ servers, subject: "a.*" }), /"a\.\*" is none/],
    [() => nats({ servers, subject: "a..b" }), /is none/],
    [() => nats({ servers, subject: "a.{key}" }), /\{topic\} and \{tenant\} are filled in/],
    [() => nats({ servers, stream: "a.b" }), /nats stream "a\.b" is none/],
    [() => nats({ servers, auth: { user: "ada", password: "" } }), /nats auth is \{ token \}/],
    [() => nats({ servers, timeout: "0s" }), /timeout/],
    [() => nats({ servers, subjekt: "a" } as never), /subject/],
  ];
  for (const [make, wanted] of refused) assert.throws(make, wanted);
});
