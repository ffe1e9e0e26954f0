// Every route that names a thing, asked by another tenant: what is somebody else's is answered as what never was. Every list and report
// is what it was before the other tenant had anything.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Field } from "../../src/verbs/field.ts";
import { apiPrefix } from "../../src/verbs/route.ts";
import { everyRoute, type VerbRoute } from "../../src/server/routes.ts";
import { aliases } from "../../src/server/aliases.ts";
import { backends } from "../support/open-test.ts";
import { openServer } from "../support/open-server.ts";
import { fillServed, served } from "../support/served-world.ts";

const routes = (await everyRoute()).filter(({ verb }) => verb.of === undefined);
/** What never was, of the form of what is asked for. */
function nothingLike(name: string): string {
  return isId(name) ? "01900000-0000-7000-8000-000000000000" : "never-was";
}

function isId(name: string): boolean {
  return /^[0-9a-f]{8}-/.test(name);
}

/** A job that a program defines is no tenant's: it serves all of them, and each may ask what it takes. */
const ofPrograms = ["definitions.list", "definitions.show"];

/** What is asked of a route, with this name in each place of its path. */
function request({ verb, method, path, inPath, inQuery }: VerbRoute, name: string) {
  const others = Object.entries(verb.input).filter(([field]) => !inPath.includes(field));
  const given = others.flatMap(([field, each]) => (isNeeded(verb, field, each) ? [[field, valueOf(each.schema)]] : []));
  const fields = Object.fromEntries(given) as Record<string, unknown>;
  const filled = path.replaceAll(/\{\w+\}/g, encodeURIComponent(name));
  if (method !== "GET") return { path: filled, body: fields };
  const query = new URLSearchParams();
  for (const field of inQuery) if (Object.hasOwn(fields, field)) query.set(field, String(fields[field]));
  return { path: query.size === 0 ? filled : `${filled}?${query.toString()}` };
}

/** What a check wants besides, of fields that may be left out. */
const wanted: Readonly<Record<string, readonly string[]>> = {
  "jobs.edit": ["priority"],
  "jobs.move": ["last"],
  "schedules.edit": ["every"],
  "templates.edit": ["job"],
  "calls.reschedule": ["in"],
  "queues.limit": ["concurrency"],
  "listeners.rewind": ["to"],
  "listeners.skip": ["to"],
};

/** What refuses before it looks: by the definitions of this process, which are no tenant's, or by the form of a number or a time. */
const decidedBefore = [
  ...["records.aggregate", "records.search", "records.put", "records.patch", "records.link", "records.restore"],
  "commits.show",
];

function isNeeded({ words }: VerbRoute["verb"], field: string, { maybe }: Field): boolean {
  const [noun = "", verb = ""] = words.split(" ");
  return !maybe || (wanted[`${noun}.${verb}`] ?? []).includes(field) || field === "apply";
}

function valueOf(schema: Field["schema"]): unknown {
  const { type, enum: words, minimum, anyOf, pattern, format } = schema as Record<string, unknown>;
  const either = (anyOf as Field["schema"][] | undefined)?.[0];
  if (either !== undefined) return valueOf(either);
  if (Array.isArray(words)) return words[0];
  if (type === "boolean") return true;
  if (type === "integer") return Math.max(1, Number(minimum ?? 1));
  if (pattern !== undefined) return "1m";
  if (format === "date-time") return "2026-01-01T00:00:00.000Z";
  if (type === "array") return ["x"];
  return type === "string" ? "other" : {};
}

for (const backend of backends) {
  test(`what another tenant has is answered as what never was, by every route that names a thing (${backend})`, async (t) => {
    const { app, ask, url, token } = await openServer(t, backend, { worker: false });
    const known = await fillServed(url);
    const ids = Object.values(known).flat().filter(isId);
    const tokens = {
      admin: await token({ role: "admin", tenant: "acme" }),
      worker: await token({ role: "worker", tenant: "acme" }),
    };
    const told: string[] = [];
    const found = new Map<string, Set<number>>();

    for (const route of routes.filter(({ inPath, key }) => inPath.length > 0 && !ofPrograms.includes(key))) {
      const statuses = found.set(route.key, new Set()).get(route.key) ?? assert.fail();
      const plain = async (name: string): Promise<string> => {
        const { path, body } = request(route, name);
        const given = route.verb.role === "worker" ? tokens.worker : tokens.admin;
        const response = await ask(route.method, path, { token: given, ...(body === undefined ? {} : { body }) });
        if (response.headers.get("content-type") === "text/event-stream") await response.body?.cancel();
        statuses.add(response.status);
        const text = response.headers.get("content-type") === "text/event-stream" ? "" : await response.text();
        return `${response.status} ${text.replaceAll(name, "?").replaceAll(/"at":"[^"]*"/g, "")}`;
      };
      const own = [route.key.split(".")[0] ?? "", ...route.inPath].flatMap((name) => known[name] ?? []);
      for (const name of new Set([...ids, ...own])) {
        const nobodys = await plain(nothingLike(name));
        const theirs = await plain(name);
        if (theirs !== nobodys) told.push(`${route.method} ${route.path} of ${name}: ${theirs}, and not ${nobodys}`);
      }
    }

    assert.deepEqual(told, []);
    // Most of them looked for the thing; what was refused before that would prove nothing.
    const blind = [...found]
      .filter(([, statuses]) => [...statuses].every((status) => status === 400))
      .map(([key]) => key);
    assert.deepEqual(blind, decidedBefore);
    for (const { method, path } of aliases) {
      const other = apiPrefix + path.replace("{tenant}", "default").replace("{id}", known["calls"]?.[0] ?? "");
      const headers = { authorization: `Bearer ${tokens.admin}` };
      assert.equal((await app.fetch(new Request(`http://127.0.0.1${other}`, { method, headers }))).status, 403, other);
    }
  });

  test(`no list or report of a tenant changes with what another tenant has (${backend})`, async (t) => {
    const { ask, url, token } = await openServer(t, backend, { worker: false, use: served });
    const given = await token({ role: "admin", tenant: "acme" });
    const lists = routes
      .filter(({ method, inPath, verb }) => method === "GET" && inPath.length === 0 && !verb.stream)
      // These questions stand in it themselves.
      .filter(({ key }) => key !== "audit.list" && !ofPrograms.includes(key));
    const dryRuns = routes.filter(({ verb, inPath }) => verb.destroys === true && inPath.length === 0);
    const answers = async (): Promise<Record<string, string>> => {
      const all: Record<string, string> = {};
      for (const { key, path } of lists) all[key] = await plain(await ask("GET", path, { token: given }));
      for (const { key, path } of dryRuns) all[key] = await plain(await ask("POST", path, { token: given, body: {} }));
      all["search"] = await plain(await ask("GET", "/records/my-note/found?words=one", { token: given }));
      return all;
    };
    const plain = async (response: Response): Promise<string> =>
      `${response.status} ${(await response.text()).replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "…")}`;
    const before = await answers();

    await fillServed(url);

    const after = await answers();
    assert.deepEqual(after, before);
    assert.ok(lists.length > 20 && dryRuns.length > 3, `${lists.length} and ${dryRuns.length}`);
    assert.match(after["sessions.list"] ?? "", /^200/);
  });
}
