import assert from "node:assert/strict";
import { test } from "node:test";
import answers from "../../src/verbs/outputs.json" with { type: "json" };
import { limits } from "../../src/core/limits.ts";
import { mcpHandler } from "../../src/server/mcp.ts";
import { allowances, toolName, type Allow, type McpCaller } from "../../src/server/mcp/tool.ts";
import { everyVerb } from "../../src/verbs/table.ts";
import { operate, read, type Role, type Verb } from "../../src/verbs/verb.ts";
import { backends, openTest } from "../support/open-test.ts";
import { connect, connectBy, everybody, onBook } from "./mcp-client.ts";

const verbs = await everyVerb();
const remote = verbs.map(([, verb]) => verb).filter(({ local }) => local !== true);

/** What the marks of the verbs say that a caller may have; an assistant is never a worker unless its token is one. */
function expected({ role, tenant }: McpCaller, allow: Allow): string[] {
  const roles: Record<Role, readonly Role[]> = {
    read: ["read"],
    operate: ["read", "operate"],
    admin: ["read", "operate", "admin"],
    worker: ["worker"],
  };
  const allowed: Record<Allow, readonly Role[]> = {
    read: ["read"],
    operate: ["read", "operate", "worker"],
    admin: ["read", "operate", "admin", "worker"],
  };
  return remote
    .filter((verb) => roles[role].includes(verb.role) && allowed[allow].includes(verb.role))
    .filter(({ of }) => of !== "book" || (tenant === null && role === "admin"))
    .map(toolName);
}

const refuse = (): never => assert.fail("nothing is to run here");

test("the tools are the verbs but those that name files of this machine, as far as the caller and the server allow", async (t) => {
  for (const allow of allowances) {
    for (const role of ["read", "operate", "admin", "worker"] as const) {
      for (const tenant of [null, "acme"]) {
        const { names } = await connect(t, { allow, run: refuse }, { role, tenant });

        assert.deepEqual(await names(), expected({ role, tenant }, allow), `${role} of ${tenant}, allowed to ${allow}`);
      }
    }
  }
  assert.deepEqual(expected(everybody, "admin").length, remote.filter(({ role }) => role !== "worker").length);
});

test("every tool says what it is for, what it takes and whether it changes anything, in the letters that clients take", async (t) => {
  const { client } = await connect(t, { allow: "admin", run: refuse });

  const { tools } = await client.listTools();

  for (const { name, description = "", annotations, inputSchema } of tools) {
    const verb = remote.find((each) => toolName(each) === name) ?? assert.fail(name);
    assert.match(name, /^[a-z][a-z_]{0,63}$/);
    assert.doesNotMatch(description, /exit code|--json|Ctrl-C|--apply/, name);
    assert.deepEqual(Object.keys(inputSchema.properties ?? {}), Object.keys(verb.input), name);
    assert.equal(annotations?.readOnlyHint, verb.role === "read" || verb.needs === "read", name);
    if (verb.destroys !== undefined) assert.deepEqual([annotations?.destructiveHint], [true], name);
  }
  // What is said of an answer that was too large stands beside its own fields.
  for (const [key, schema] of Object.entries(answers.outputs))
    assert.doesNotMatch(JSON.stringify(schema), /"(?:shortened|ended)":\{/, key);
  const hints = Object.fromEntries(tools.map(({ name, annotations }) => [name, annotations?.destructiveHint]));
  assert.deepEqual([hints["jobs_enqueue"], hints["jobs_cancel"], hints["jobs_list"]], [false, true, false]);
  const enqueue = tools.find(({ name }) => name === "jobs_enqueue")?.description ?? "";
  assert.match(
    enqueue,
    /^Make a job, .*\nExample: \{"name":"send-receipt","params":\{"orderId":"o-17"\},"key":"o-17"\}/s,
  );
});

test("a tool that the caller may not have says why, and nothing runs", async (t) => {
  const reading = await connect(t, { allow: "read", run: refuse });
  const operating = await connect(t, { allow: "operate", run: refuse });
  const reader = await connect(t, { allow: "admin", run: refuse }, { role: "read", tenant: null });
  const tenant = await connect(t, { allow: "admin", run: refuse }, { role: "admin", tenant: "acme" });

  const told = await Promise.all([
    reading.call("jobs_enqueue", { name: "a" }),
    operating.call("recover", { apply: true }),
    reader.call("jobs_cancel", { id: "a" }),
    tenant.call("doctor"),
  ]);

  for (const { failed, text } of told) assert.ok(failed && text.startsWith("forbidden: "), text);
  assert.match(told[0].text, /needs "operate", and this server only reads: /);
  assert.match(told[1].text, /needs "admin", and this server is allowed to operate/);
  assert.match(told[2].text, /is for the role operate, and your token has the role read/);
  assert.match(told[3].text, /about the whole book, and you see the tenant "acme"/);
  await assert.rejects(reading.call("jobs_lst"), /there is no tool "jobs_lst": did you mean jobs_list\?/);
});

for (const backend of backends) {
  test(`${backend}: an assistant makes work, looks at it and is told what is wrong with a call`, async (t) => {
    const { book } = await openTest(t, backend, { worker: false });
    const { call } = await connect(t, { allow: "operate", run: onBook(book) });

    const made = await call("jobs_enqueue", { name: "send-receipt", params: { orderId: "o-17" } });
    const id = String(made.value["id"]);
    const shown = await call("jobs_show", { id });
    const bad = [
      await call("jobs_list", { limt: 5 }),
      await call("jobs_list", { limit: 0 }),
      await call("jobs_list", { status: ["asleep"] }),
      await call("jobs_show", {}),
      await call("jobs_show", { id: "nobody" }),
      await call("jobs_show", { id, ["__proto__"]: { id } }),
    ].map(({ failed, text }) => [failed, text.split("\n")[0]]);

    assert.equal(made.failed, false);
    assert.deepEqual([shown.value["name"], shown.value["status"]], ["send-receipt", "queued"]);
    assert.match(String(shown.value["createdAt"]), /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    assert.deepEqual(JSON.parse(shown.text), shown.value);
    assert.ok(bad.every(([failed], index) => failed === index < 5));
    assert.match(String(bad[0]?.[1]), /^invalid: "jobs list" does not know limt: did you mean limit\?/);
    assert.match(String(bad[1]?.[1]), /^invalid: limit is 0: give a whole number from 1/);
    assert.match(String(bad[2]?.[1]), /^invalid: status is "asleep": /);
    assert.match(String(bad[3]?.[1]), /^invalid: id is missing: the id of the job/);
    assert.match(String(bad[4]?.[1]), /^not_found: /);
  });

  test(`${backend}: an assistant of a tenant sees nothing of another`, async (t) => {
    const { book } = await openTest(t, backend, { worker: false });
    const { id } = await book.tenant("acme").jobs.enqueue("mine", null);
    const options = { allow: "admin", run: onBook(book) } as const;
    const acme = await connect(t, options, { role: "admin", tenant: "acme" });
    const other = await connect(t, options, { role: "admin", tenant: "other" });

    const [own, foreign, none] = [
      await acme.call("jobs_show", { id }),
      await other.call("jobs_show", { id }),
      await other.call("jobs_list"),
    ];

    assert.equal(own.value["name"], "mine");
    assert.match(foreign.text, /^not_found: /);
    assert.deepEqual(none.value["items"], []);
  });

  test(`${backend}: what destroys only says what it would do until it is told to apply it`, async (t) => {
    const { book } = await openTest(t, backend, { worker: false });
    const { id } = await book.calls.submit({ url: "https://stock.example/reserve" });
    await book.calls.cancel(id);
    const { call } = await connect(t, { allow: "operate", run: onBook(book) });

    const dry = await call("calls_delete", { id });
    const still = await call("calls_show", { id });
    const wet = await call("calls_delete", { id, apply: true });
    const gone = await call("calls_show", { id });

    assert.deepEqual([dry.value["dryRun"], dry.value["count"], still.failed], [true, 1, false]);
    assert.deepEqual([wet.value["dryRun"], gone.failed], [false, true]);
  });
}

test("a page that is too large comes with fewer items, and its cursor goes on behind them", async (t) => {
  const { book } = await openTest(t, "sqlite", { worker: false });
  for (let n = 0; n < 30; n++) await book.jobs.enqueue(`job-${n}`, { text: "x".repeat(5000) });
  const { call } = await connect(t, { allow: "read", run: onBook(book) });

  const seen: string[] = [];
  let after: unknown = undefined;
  do {
    const page = await call("jobs_list", after === undefined ? {} : { after });
    assert.ok(
      (page.text.length <= limits.toolBytesMax && page.text.length > limits.toolBytesMax / 2) ||
        page.value["next"] === null,
    );
    if (page.value["next"] !== null) assert.match(String(page.value["shortened"]), /^The page has \d+ items, /);
    const items = page.value["items"] as { name: string; params: { text: string } }[];
    assert.ok(items.every(({ params }) => params.text.length === 5000));
    seen.push(...items.map(({ name }) => name));
    after = page.value["next"];
  } while (typeof after === "string");

  assert.deepEqual(
    seen,
    Array.from({ length: 30 }, (_, n) => `job-${29 - n}`),
  );
});

test("an answer that is too large is cut where its texts and lists are long, and says so", async (t) => {
  const { book } = await openTest(t, "sqlite", { worker: false });
  const params = { long: "💡".repeat(100_000), many: Array.from({ length: 20_000 }, (_, n) => ({ n })), id: "o-17" };
  const { id } = await book.jobs.enqueue("large", params);
  const { call } = await connect(t, { allow: "read", run: onBook(book) });

  const { failed, text, value } = await call("jobs_show", { id });
  const [only] = (await call("jobs_list")).value["items"] as { params: typeof params }[];

  assert.equal(failed, false);
  assert.ok(text.length <= limits.toolBytesMax);
  assert.match(String(value["shortened"]), /^The whole answer has \d{7} bytes\. Texts are cut after 4096 characters/);
  const shown = value["params"] as typeof params;
  assert.equal(shown.id, "o-17");
  assert.match(shown.long, /… \(195904 more characters\)$/);
  assert.deepEqual(shown.many.length, 200);
  assert.equal(only?.params.id, "o-17");
});

/** A verb whose answer comes when the test wants it to. */
function streaming(items: () => AsyncIterable<unknown>): readonly [string, Verb][] {
  const verb = read({ words: "things follow", stream: true, about: "follow", run: items, show: String });
  return [["events.tail", verb as Verb]];
}

test("what follows is given as the first of it, and says whether it has ended", async (t) => {
  let closed = 0;
  const endless = async function* (): AsyncGenerator<unknown> {
    try {
      for (let n = 0; ; n++) yield { n };
    } finally {
      closed++;
    }
  };
  const few = async function* (): AsyncGenerator<unknown> {
    yield { n: 1 };
  };
  const silent = async function* (): AsyncGenerator<unknown> {
    yield { n: 1 };
    await new Promise(() => undefined);
  };
  const ask = async (items: () => AsyncIterable<unknown>, streamMs: number): Promise<Record<string, unknown>> => {
    const run = (): AsyncIterable<unknown> => items();
    const { call } = await connect(t, { allow: "read", run, verbs: streaming(items), streamMs });
    return (await call("things_follow")).value;
  };

  const [first, all, none] = [await ask(endless, 60_000), await ask(few, 60_000), await ask(silent, 20)];

  assert.deepEqual([(first["items"] as unknown[]).length, first["ended"]], [limits.toolItemsMax, false]);
  assert.deepEqual(all, { items: [{ n: 1 }], ended: true });
  assert.deepEqual(none, { items: [{ n: 1 }], ended: false });
  assert.equal(closed, 1);
});

test("who cancels a call has it ended, and nobody else's with the same number", async (t) => {
  const begun = [Promise.withResolvers<AbortSignal>(), Promise.withResolvers<AbortSignal>()];
  let calls = 0;
  const verb = operate({ words: "things wait", about: "wait", run: () => null, show: String }) as Verb;
  const options = {
    allow: "operate",
    verbs: [["things.wait", verb]],
    run: ({ signal }: { signal: AbortSignal }) => {
      begun[calls++]?.resolve(signal);
      return new Promise(() => undefined);
    },
  } as const;
  const handle = await mcpHandler(options);
  const one = await connectBy(t, (request) => handle(request, everybody));
  const other = await connectBy(t, (request) => handle(request, everybody));
  const cancel = new AbortController();

  const first = one.call("things_wait", {}, cancel.signal);
  const signal = await begun[0]?.promise;
  const second = other.call("things_wait", {});
  second.catch(() => undefined);
  const untouched = await begun[1]?.promise;
  cancel.abort();

  await assert.rejects(first, /abort/i);
  if (signal?.aborted === false) await new Promise((resolve) => signal.addEventListener("abort", resolve));
  assert.equal(signal?.aborted, true);
  assert.equal(untouched?.aborted, false);
});

test("a defect is told to the server, and the caller hears nothing of what is inside", async (t) => {
  const defects: unknown[] = [];
  const run = (): never => {
    throw new TypeError("select secret from /var/lib/book.db");
  };
  const { call } = await connect(t, { allow: "read", run, onDefect: (error) => defects.push(error) });

  const { failed, text } = await call("jobs_list");

  assert.equal(failed, true);
  assert.match(text, /^internal: /);
  assert.doesNotMatch(text, /secret|var/);
  assert.equal(defects.length, 1);
});

test("the manual can be read, and no other file", async (t) => {
  const { client } = await connect(t, { allow: "read", run: refuse });

  const { resources } = await client.listResources();
  const jobs = resources.find(({ uri }) => uri === "daybook://docs/jobs");
  const { contents } = await client.readResource({ uri: "daybook://docs/jobs" });

  assert.equal(jobs?.title, "Jobs");
  assert.match(String((contents[0] as { text?: string }).text), /^# Jobs\n/);
  for (const uri of ["daybook://docs/../package.json", "daybook://docs/decisions/README", "file:///etc/passwd"]) {
    await assert.rejects(client.readResource({ uri }), /there is no resource/, uri);
  }
});
