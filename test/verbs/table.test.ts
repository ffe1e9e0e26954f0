import assert from "node:assert/strict";
import { test } from "node:test";
import { Command } from "commander";
import { addVerb } from "../../src/cli/commands.ts";
import { readInput } from "../../src/cli/read-input.ts";
import { accessOf } from "../../src/cli/run-verb.ts";
import { exampleInput } from "../../src/verbs/example.ts";
import { render } from "../../src/verbs/render.ts";
import { everyVerb, nounOf, type NounName, type Table } from "../../src/verbs/table.ts";
import {
  admin,
  checkInput,
  fieldsOf,
  inputSchema,
  kebab,
  nameOf,
  operate,
  placesOf,
  read,
  type Verb,
} from "../../src/verbs/verb.ts";
import { wordsOf } from "./words-of.ts";

const verbs = await everyVerb();

/** The options of the program itself, which no field may take. */
const globals = [
  "book",
  "server",
  "token",
  "tenant",
  "schema",
  "json",
  "utc",
  "help",
  "version",
  "from",
  "config",
  "files",
  "noWait",
];

for (const [key, verb] of verbs) {
  test(`${key} says everything about itself, and each of its fields has one place`, () => {
    const names = Object.keys(verb.input);
    const places = placesOf(verb).map(({ name }) => name);
    const inPath = pathOf(verb).flatMap((part) => /^\{(\w+)\}$/.exec(part)?.[1] ?? []);

    assert.ok(verb.about !== "" && verb.examples.length > 0);
    assert.equal(nameOf(verb), wordsFor(key as `${NounName}.${string}`));
    for (const name of [...places, ...inPath]) assert.ok(names.includes(name), `${name} is no field of ${key}`);
    for (const { name, needed } of placesOf(verb)) assert.equal(verb.input[name]?.maybe, !needed, name);
    for (const name of inPath) assert.equal(verb.input[name]?.maybe, false, `${name} is part of the path`);
    for (const [name, field] of fieldsOf(verb)) {
      assert.ok(field.about !== "" && field.schema["description"] !== "", name);
      assert.ok(places.includes(name) || !globals.includes(name), `${name} is an option of the program`);
    }
    // A local verb has no route, every other has one, and what only reads is a GET.
    assert.equal(verb.http === undefined, verb.local === true);
    const isGet = verb.http?.startsWith("GET ") === true;
    if (verb.http !== undefined && verb.role === "read") assert.ok(isGet, verb.http);
    // What only an admin may see is read by a GET too.
    if (isGet) assert.ok(verb.role === "read" || verb.needs === "read", verb.http);
  });

  test(`the examples of ${key} are commands that can be run`, async () => {
    for (const example of verb.examples) {
      const input = await inputOf(key, verb, example);

      assert.doesNotThrow(() => checkInput(verb, input), example);
      // Other ways in show the same input, unless it needs what only a command line has.
      const elsewhere = exampleInput(verb, example);
      if (elsewhere !== null) assert.deepEqual(elsewhere, input, example);
      else assert.match(example, / (?:@|-(?:\s|$)|--(?:tenant|from|config) )/, example);
    }
  });

  test(`${key} refuses what it does not know, what is missing and what is undefined`, () => {
    const needed = fieldsOf(verb).filter(([, { maybe }]) => !maybe);

    assert.throws(() => checkInput(verb, { wholly: 1 }), { code: "invalid" });
    for (const [name] of needed) assert.throws(() => checkInput(verb, {}), { code: "invalid" }, name);
    for (const [name, field] of fieldsOf(verb)) {
      for (const value of [undefined, Promise.resolve(1), 1n, Symbol("a"), () => 1, new Map(), Number.NaN]) {
        assert.throws(() => field.check(value, name), { code: "invalid" }, `${name}: ${typeof value}`);
      }
    }
    assert.equal(inputSchema(verb)["additionalProperties"], false);
  });
}

test("a list without rows tells a person so, and is empty for a program", () => {
  const said = {
    "calls.list": "There are no such calls, or none before that cursor.",
    "deadLetters.groups": "There are no dead letters.",
    "deadLetters.list": "There are no such dead letters.",
    "events.list": "There are no such events on this page.",
    "listeners.list": "There are no durable listeners.",
    "sinks.list": "There are no sinks.",
  };
  const paper = { width: 80, colour: false, zone: "UTC", now: 0 };
  for (const [key, expected] of Object.entries(said)) {
    const shown = verbs.find(([each]) => each === key)?.[1].show({ items: [], live: [], next: null }, {}) ?? [];

    assert.equal(render(shown, paper), expected);
    assert.match(render(shown, { ...paper, width: null }), /^\w[\w\t ]+$/, "a head alone");
  }
});

test("a verb that names no route has the one that its words say", () => {
  const said = { about: "a verb", run: () => null, show: () => "" };

  const routes = [
    read({ ...said, words: "jobs list" }),
    read({ ...said, words: "jobs show <id>" }),
    read({ ...said, words: "jobs explain <id>" }),
    operate({ ...said, words: "jobs prioritise <id> <priority>" }),
    operate({ ...said, words: "jobs retry [id]" }),
    admin({ ...said, words: "prune" }),
    admin({ ...said, words: "views drop", http: "DELETE /views" }),
    admin({ ...said, words: "backup <path>", local: true }),
  ].map(({ http }) => http);

  assert.deepEqual(routes, [
    "GET /jobs",
    "GET /jobs/{id}",
    "GET /jobs/{id}/explain",
    "POST /jobs/{id}/prioritise",
    "POST /jobs/retry",
    "POST /prune",
    "DELETE /views",
    undefined,
  ]);
});

test("the days on which retention removed something are those of UTC, whatever the reader's zone", () => {
  const [, retain] = verbs.find(([key]) => key === "book.retain") ?? assert.fail();
  const eviction = {
    at: Date.UTC(2026, 2, 5),
    what: "run",
    reason: "age",
    removed: 3,
    until: Date.UTC(2026, 1, 26, 3),
  };
  const answer = {
    dryRun: true,
    policy: { runs: "7d" },
    runs: 1,
    files: [],
    filesDeleted: 0,
    kept: {},
    evictions: [eviction],
  };
  const paper = { width: 100, colour: false, zone: "America/New_York", now: Date.UTC(2026, 2, 6) };

  assert.match(render(retain.show(answer, {}), paper), /\n2026-03-05 +run +age +3 +2026-02-25 22:00:00$/);
});

test("a release tells that --apply is about --drop alone, because without it everything goes at once", () => {
  const [, release] = verbs.find(([key]) => key === "book.release") ?? assert.fail();
  assert.match(release.input["apply"]?.about ?? "", /^with --drop: /);
});

test("who may read sees that a call was made, and who looks after the book what it said", () => {
  const roles = ["calls.show", "calls.list", "calls.explain", "calls.reveal", "calls.curl", "book.reseal"].map(
    (key) => verbs.find(([each]) => each === key)?.[1].role,
  );

  assert.deepEqual(roles, ["read", "read", "read", "admin", "admin", "admin"]);
});

test("what destroys opens the book to look until --apply, and a release only when it drops", () => {
  const isLooking = (key: string, input: Record<string, unknown>): boolean | undefined => {
    const verb = verbs.find(([each]) => each === key)?.[1] ?? assert.fail(key);
    return accessOf(new Command(), { verb, input, use: [] }).readOnly;
  };

  for (const [key, { destroys, input }] of verbs) {
    if (destroys === undefined) continue;
    const chosen = destroys === true ? {} : { [destroys]: true };
    assert.ok(destroys === true || input[destroys]?.kind === "flag", key);
    assert.equal(isLooking(key, chosen), true, key);
    assert.equal(isLooking(key, { ...chosen, apply: true }), undefined, key);
  }
  assert.equal(isLooking("book.release", {}), undefined);
  assert.equal(isLooking("book.release", { drop: true }), true);
});

test("no two verbs share their words or their route, and no route hides another", () => {
  const words = verbs.map(([, verb]) => nameOf(verb));
  const routes = verbs.flatMap(([, verb]) => (verb.http === undefined ? [] : [verb.http]));

  assert.equal(new Set(words).size, words.length);
  for (const [index, one] of routes.entries()) {
    for (const other of routes.slice(index + 1)) assert.ok(!overlaps(one, other), `${one} and ${other}`);
  }
});

test("two routes overlap when one address could be either", () => {
  assert.ok(overlaps("GET /jobs/{id}", "GET /jobs/{name}"));
  assert.ok(overlaps("GET /jobs/{id}", "GET /jobs/stream"));
  assert.ok(overlaps("GET /jobs/{id}/place", "GET /jobs/stream/{part}"));
  assert.ok(!overlaps("GET /jobs/{id}", "POST /jobs/{id}"));
  assert.ok(!overlaps("GET /jobs/{id}", "GET /jobs/{id}/place"));
});

test("the compiler knows the input of every verb, and what it answers", () => {
  type Input = Parameters<Table["jobs"]["list"]["run"]>[1];
  type Answer = Awaited<ReturnType<Table["jobs"]["cancel"]["run"]>>;

  const good: Input = { status: ["failed"], limit: 5 };
  // @ts-expect-error there is no such status
  const bad: Input = { status: ["asleep"] };
  // @ts-expect-error an id is needed
  const missing: Parameters<Table["jobs"]["cancel"]["run"]>[1] = {};
  const status: Answer["status"] = "cancelling";

  assert.deepEqual([good, bad, missing, status].length, 4);
});

function overlaps(one: string, other: string): boolean {
  const [ours, theirs] = [one, other].map((route) => route.split(/[ /]/));
  if (ours === undefined || theirs === undefined || ours.length !== theirs.length) return false;
  return ours.every(
    (part, index) => [part, theirs[index] ?? ""].some((each) => each.startsWith("{")) || part === theirs[index],
  );
}

/** The words that its place in the table gives a verb: `dead-letters list`, or `metrics` where the noun is not said. */
function wordsFor(key: `${NounName}.${string}`): string {
  const [noun = "", name = ""] = key.split(".");
  return nounOf(noun as NounName).plain === true ? kebab(name) : `${kebab(noun)} ${kebab(name)}`;
}

function pathOf({ http = "GET /" }: Pick<Verb, "http">): string[] {
  return http.split("/").slice(1);
}

async function inputOf(key: string, verb: Verb, example: string): Promise<Record<string, unknown>> {
  const program = new Command("daybook").exitOverride().option("--tenant <id>");
  const words = nameOf(verb).split(" ");
  const group = words.length === 1 ? program : program.command(words[0] ?? "");
  const input = Promise.withResolvers<Record<string, unknown>>();
  addVerb(group, verb, { isDefault: false }, async (command) =>
    // Files are not there, and every other text is read as it is.
    input.resolve(await readInput(command, verb, async (text) => (/^@|^-$/.test(text) ? "[]" : text))),
  );
  await program.parseAsync(wordsOf(example), { from: "user" });
  return input.promise;
}
