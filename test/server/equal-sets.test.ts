// Every way in is made from the table of verbs: each has what the others have, but for what a verb's marks say. A way in that is added
// gets its set here.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Command } from "commander";
import { describeApi } from "../../schema/openapi.ts";
import { createProgram } from "../../src/cli/program.ts";
import { connect } from "../../src/client/connect.ts";
import { aliases } from "../../src/server/aliases.ts";
import { extraRoutes } from "../../src/server/extra-routes.ts";
import { toolsOf, whyNot, type McpCaller } from "../../src/server/mcp/tool.ts";
import { mayCall } from "../../src/server/policy.ts";
import { everyRoute } from "../../src/server/routes.ts";
import outputs from "../../src/verbs/outputs.json" with { type: "json" };
import { apiPrefix, readRoute } from "../../src/verbs/route.ts";
import { everyVerb, nounOf, type NounName } from "../../src/verbs/table.ts";
import { nameOf, type Verb } from "../../src/verbs/verb.ts";

const verbs = await everyVerb();
/** What can be reached from elsewhere: a verb that names files of this machine, or needs this process, cannot. */
const remote = verbs.filter(([, verb]) => verb.local !== true);
const names = remote.map(([key]) => key).toSorted();

test("the command line has a command for each verb, and for nothing else but what is made by hand", async () => {
  const program = await createProgram({ json: false, isNamed: () => true });
  const commands = (of: Command, path: readonly string[] = []): string[] =>
    of.commands.flatMap((each) => {
      const words = [...path, each.name()];
      return each.commands.length === 0 ? [words.join(" ")] : commands(each, words);
    });

  const byHand = ["completion", "config", "help", "init", "mcp", "migrate", "run", "serve"];
  const expected = [...verbs.map(([, verb]) => nameOf(verb)), ...byHand];
  assert.deepEqual(commands(program).toSorted(), expected.toSorted());
});

test("the server routes every verb but the local ones, and each route is of one verb", async () => {
  assert.deepEqual((await everyRoute()).map(({ key }) => key).toSorted(), names);
  const routes = remote.map(([, verb]) => verb.http);

  assert.ok(routes.every((route) => route !== undefined && /^(?:GET|POST|PUT|DELETE) \/\S+$/.test(route)));
  assert.equal(new Set(routes).size, routes.length);
});

test("the document of the API has an operation for each verb, at its route, and the extra routes", async () => {
  const { paths } = (await describeApi()) as { paths: Record<string, Record<string, { operationId: string }>> };
  const found = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, { operationId }]) => [operationId, `${method.toUpperCase()} ${path}`]),
  );

  const expected = [
    ...remote.map(([key, verb]) => [key, `${readRoute(verb)?.method} ${apiPrefix}${readRoute(verb)?.path}`]),
    ...aliases.map(({ method, path }) => `${method} ${apiPrefix}${path}`).map((route) => [route, route]),
    ...Object.keys(extraRoutes).map((route) => [route, route]),
  ];
  assert.deepEqual(new Map(found as [string, string][]), new Map(expected as [string, string][]));
  assert.equal(found.length, expected.length);
});

/** Who may, in the words of the design: of the book is what an admin of the whole book may, and a worker does nothing else. */
function mayBe(caller: McpCaller, { role, of }: Verb): boolean {
  if (of === "book") return caller.role === "admin" && caller.tenant === null;
  const least = ["read", "operate", "admin"];
  if (role === "worker" || caller.role === "worker") return role === caller.role;
  return least.indexOf(caller.role) >= least.indexOf(role);
}

test("the policy, the document, the reference and the tools say the same of who may call a verb", async () => {
  const { paths } = (await describeApi()) as { paths: Record<string, Record<string, Record<string, unknown>>> };
  const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
  const page = readFileSync(join(import.meta.dirname, "../../docs/reference.md"), "utf8");
  const tools = toolsOf(verbs, outputs);

  for (const [key, verb] of remote) {
    const operation = operations.find(({ operationId }) => operationId === key);
    const [, marks = ""] = new RegExp(`^### ${nameOf(verb)}\n[^]*?^\\*(role [^*]+)\\*$`, "m").exec(page) ?? [];
    const role = verb.of === "book" ? "admin" : verb.role;
    assert.deepEqual([operation?.["x-daybook-role"], operation?.["x-daybook-of"]], [role, verb.of], key);
    assert.deepEqual([marks.split(" · ")[0], / of the book/.test(marks)], [`role ${role}`, verb.of === "book"], key);
  }
  for (const role of ["read", "operate", "admin", "worker"] as const) {
    for (const tenant of [null, "acme"]) {
      const caller = { role, tenant };
      const expected = remote.filter(([, verb]) => mayBe(caller, verb)).map(([key]) => key);
      const routed = remote.filter(([, verb]) => mayCall(verb, caller)).map(([key]) => key);
      const listed = tools.filter((each) => whyNot(each, caller, "admin") === undefined).map((each) => each.key);
      assert.deepEqual([routed, listed], [expected, expected], `${role} of ${tenant ?? "the book"}`);
    }
  }
});

test("the client has a function for each verb, and for nothing else", () => {
  const book: object = connect("http://127.0.0.1:1");
  // What is more than a verb: other tenants, the live stream, and a job from a template, which is a field of the verb.
  const more = ["tenant", "stream", "jobs.enqueueFrom"];

  const found = Object.entries(book).flatMap(([noun, of]: [string, unknown]) =>
    typeof of === "function" ? [noun] : Object.keys(of as object).map((name) => `${noun}.${name}`),
  );

  const plain = (key: string): string => {
    const [noun = "", name = ""] = key.split(".");
    return nounOf(noun as NounName).plain === true ? name : key;
  };
  assert.deepEqual(found.filter((each) => !more.includes(each)).toSorted(), names.map(plain).toSorted());
});

test("the reference has a section for each verb, and for nothing else", () => {
  const page = readFileSync(join(import.meta.dirname, "../../docs/reference.md"), "utf8");

  const sections = [...page.matchAll(/^### (.+)$/gm)].map(([, name = ""]) => name);

  assert.deepEqual(sections.toSorted(), verbs.map(([, verb]) => nameOf(verb)).toSorted());
});

test("assistants have a tool for each verb, and for nothing else", () => {
  const tools = toolsOf(verbs, outputs);

  assert.deepEqual(tools.map(({ key }) => key).toSorted(), names);
  assert.equal(new Set(tools.map(({ tool }) => tool.name)).size, names.length);
});

test("no two things of the client share a name", () => {
  const nouns = new Set(names.map((key) => key.split(".")[0] ?? ""));
  const plain = names.filter((key) => nounOf((key.split(".")[0] ?? "") as NounName).plain === true);

  const taken = [...plain.map((key) => key.split(".")[1] ?? ""), "tenant", "stream"].filter((name) => nouns.has(name));

  assert.deepEqual(taken, []);
});
