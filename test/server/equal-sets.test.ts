// Every way in is made from the table of verbs: each has what the others have, but for what a verb's marks say. A way in that is added
// gets its set here.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { describeApi } from "../../schema/openapi.ts";
import { connect } from "../../src/client/connect.ts";
import { aliases } from "../../src/server/aliases.ts";
import { extraRoutes } from "../../src/server/extra-routes.ts";
import { toolsOf } from "../../src/server/mcp/tool.ts";
import outputs from "../../src/verbs/outputs.json" with { type: "json" };
import { apiPrefix, readRoute } from "../../src/verbs/route.ts";
import { everyVerb, nounOf, type NounName } from "../../src/verbs/table.ts";
import { nameOf } from "../../src/verbs/verb.ts";

const verbs = await everyVerb();
/** What can be reached from elsewhere: a verb that names files of this machine, or needs this process, cannot. */
const remote = verbs.filter(([, verb]) => verb.local !== true);
const names = remote.map(([key]) => key).toSorted();

test("every verb but the local ones has a route of its own", () => {
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
