// Every route with every form of credential: who is not known is refused before anything else is looked at, who may not is told what
// would be needed, and only who may has the request itself judged. Here that request is always a wrong one, so nothing happens.
import assert from "node:assert/strict";
import { test } from "node:test";
import { manualClock, type Book } from "../../src/index.ts";
import { aliases } from "../../src/server/aliases.ts";
import { createApp } from "../../src/server/app.ts";
import { extraRoutes } from "../../src/server/extra-routes.ts";
import { apiPrefix, readRoute } from "../../src/verbs/route.ts";
import { everyVerb } from "../../src/verbs/table.ts";
import type { Role } from "../../src/verbs/verb.ts";
import { cleanup, openTest } from "../support/open-test.ts";

const origin = "http://127.0.0.1";

/** What a route asks of its caller. */
type Asked = {
  readonly method: string;
  readonly path: string;
  readonly role: Role | "everybody";
  readonly of?: "book" | undefined;
  /** The tenant that the path names. */
  readonly tenant?: string;
  /** The status for who may. */
  readonly passed: number;
};

const verbs = new Map(await everyVerb());

const ofVerbs: readonly Asked[] = [...verbs.values()].flatMap((verb) => {
  const route = readRoute(verb);
  if (route === undefined) return [];
  const path = apiPrefix + filled(route.path);
  return [{ method: route.method, path, role: verb.role, of: verb.of, passed: 400 }];
});

const ofAliases: readonly Asked[] = aliases.flatMap(({ method, path, key }) => {
  const { role } = verbs.get(key) ?? assert.fail(key);
  return ["default", "acme"].map((tenant) => ({
    method,
    path: apiPrefix + filled(path.replace("{tenant}", tenant)),
    role,
    tenant,
    passed: 400,
  }));
});

/** Routes that no verb stands behind, and how each answers whom it lets in. Null: nobody need say who they are. */
const others: Readonly<Record<string, Omit<Asked, "method" | "path"> | null>> = {
  "GET /": null,
  "GET /health/live": null,
  "GET /health/ready": null,
  [`GET ${apiPrefix}/openapi.json`]: null,
  [`POST ${apiPrefix}/login`]: null,
  [`POST ${apiPrefix}/logout`]: null,
  // Whoever has a link is known by it alone.
  "GET /login/{secret}": null,
  "GET /metrics": { role: "read", passed: 200 },
  "POST /mcp": { role: "everybody", passed: 406 },
  [`GET ${apiPrefix}/caller`]: { role: "everybody", passed: 200 },
  [`GET ${apiPrefix}/stream`]: { role: "read", passed: 400 },
  [`GET ${apiPrefix}/scheduler/status`]: { role: "admin", of: "book", passed: 200 },
  // The book of this test runs no jobs, so that nothing begins.
  [`POST ${apiPrefix}/scheduler/start`]: { role: "admin", of: "book", passed: 400 },
  [`POST ${apiPrefix}/scheduler/stop`]: { role: "admin", of: "book", passed: 200 },
};

const ofOthers: readonly Asked[] = Object.entries(others).flatMap(([route, asked]) => {
  const [method = "", path = ""] = route.split(" ");
  return asked === null ? [] : [{ method, path, ...asked }];
});

function filled(path: string): string {
  return path.replaceAll(/\{\w+\}/g, "x");
}

/** A form of credential, and who the server must take its bearer for. */
type Form = {
  readonly headers: Readonly<Record<string, string>>;
  readonly query?: string;
  /** Null: nobody. */
  readonly is: { readonly role: Role; readonly tenant: string | null } | null;
  /** The tenant that a header names. */
  readonly names?: string;
};

test("a route answers each form of credential as the policy says", async (t) => {
  const clock = manualClock();
  const { book } = await openTest(t, "sqlite", { clock, worker: false });
  const app = createApp(book);
  cleanup(t, () => app.close());
  const forms = await everyForm(book, () => clock.step("1h"));
  const routes = [...ofVerbs, ...ofAliases, ...ofOthers];

  const wrong: string[] = [];
  for (const [name, form] of Object.entries(forms)) {
    for (const asked of routes) {
      const { method, path } = asked;
      const change = { body: JSON.stringify({ wholly: 1 }), headers: { "content-type": "application/json" } };
      const { body, headers } = method === "GET" ? { body: null, headers: { "last-event-id": "none" } } : change;
      const query = [form.query ?? "", method === "GET" ? "wholly=1" : ""].filter((each) => each !== "").join("&");
      const request = new Request(`${origin}${path}${query === "" ? "" : `?${query}`}`, {
        method,
        body,
        headers: { ...headers, ...form.headers } as Record<string, string>,
      });
      // Each comes from an address of its own: who fails too often from one is told to wait.
      const response = await app.fetch(request, { address: `${name} ${method} ${path}` });
      const { status } = response;
      const text = await response.text();

      const expected = statusFor(form, asked);
      if (status !== expected)
        wrong.push(`${method} ${path} with ${name}: ${status}, and not ${expected}: ${text.slice(0, 200)}`);
      if (status === 401 && response.headers.get("www-authenticate") !== "Bearer")
        wrong.push(`${path} names no scheme`);
    }
  }

  assert.deepEqual(wrong, []);
  assert.ok(Object.keys(forms).length >= 16 && routes.length > 130, `${Object.keys(forms).length} × ${routes.length}`);
  // Nothing was done by any of them, but for the work of the process that was stopped by who may.
  assert.deepEqual(
    (await book.audit.list()).items.filter(({ verb, outcome }) => outcome?.status === 200 && verb !== "scheduler.stop"),
    [],
  );
});

const rank = { read: 1, operate: 2, admin: 3 } as const;

/** The policy, said once more: a matrix that asked the server's own would agree with whatever that says. */
function statusFor({ is, names }: Form, { role, of, tenant, passed }: Asked): number {
  if (is === null) return 401;
  if (is.tenant !== null && names !== undefined && names !== is.tenant) return 403;
  const wanted = of === "book" ? "admin" : role;
  const isHigh =
    wanted === "everybody" ||
    (wanted === "worker" || is.role === "worker" ? wanted === is.role : rank[is.role] >= rank[wanted]);
  if (!isHigh || (of === "book" && is.tenant !== null)) return 403;
  if (tenant !== undefined && is.tenant !== null && is.tenant !== tenant) return 403;
  return passed;
}

async function everyForm(book: Book, passAnHour: () => void): Promise<Readonly<Record<string, Form>>> {
  const { access } = book;
  const token = async (role: Role, tenant: string | null, expires?: string): Promise<string> => {
    const options = { role, tenant, ...(expires === undefined ? {} : { expires }) };
    return (await book.tokens.create(options)).secret;
  };
  const bearer = (secret: string): { authorization: string } => ({ authorization: `Bearer ${secret}` });
  const cookie = (secret: string): { cookie: string } => ({ cookie: `daybook_login=${secret}` });
  const logIn = async (secret: string): Promise<string> =>
    (await access.login(secret))?.cookie ?? assert.fail("no login");

  const expired = await token("admin", null, "1m");
  const expiredCookie = await logIn(expired);
  passAnHour();
  const { id, secret: revoked } = await book.tokens.create({ role: "admin", tenant: null });
  const revokedCookie = await logIn(revoked);
  await book.tokens.revoke(id);
  const admin = await token("admin", null);
  const operate = await token("operate", "default");
  const live = await logIn(admin);
  const dead = await logIn(admin);
  await access.logout(dead);
  const link = await access.link({ role: "operate", tenant: "default" });
  const byLink = await logIn(link);
  const again = await access.login(link);
  assert.equal(again, null, "a link is of use once");

  const whole = { role: "admin", tenant: null } as const;
  const operator = { role: "operate", tenant: "default" } as const;
  const known: Record<string, Form> = {};
  for (const role of ["read", "operate", "admin", "worker"] as const) {
    known[`a ${role} of the tenant`] = {
      headers: bearer(await token(role, "default")),
      is: { role, tenant: "default" },
    };
    known[`a ${role} of another tenant`] = { headers: bearer(await token(role, "acme")), is: { role, tenant: "acme" } };
    known[`a ${role} of the book`] = { headers: bearer(await token(role, null)), is: { role, tenant: null } };
  }
  return {
    ...known,
    "the scheme in other letters": { headers: { authorization: `bearer ${operate}` }, is: operator },
    "a tenant's token that names its tenant": {
      headers: { ...bearer(operate), "daybook-tenant": "default" },
      is: operator,
      names: "default",
    },
    "a tenant's token that names another": {
      headers: { ...bearer(operate), "daybook-tenant": "acme" },
      is: operator,
      names: "acme",
    },
    "the book's token that names a tenant": {
      headers: { ...bearer(admin), "daybook-tenant": "acme" },
      is: whole,
      names: "acme",
    },
    "a cookie of a token": { headers: cookie(live), is: whole },
    "a cookie of a link": { headers: cookie(byLink), is: operator },
    "a cookie among others": { headers: { cookie: `a=b; daybook_login=${live}; c=d` }, is: whole },
    nothing: { headers: {}, is: null },
    "an empty header": { headers: { authorization: "" }, is: null },
    "the scheme alone": { headers: { authorization: "Bearer " }, is: null },
    "another scheme": { headers: { authorization: `Basic ${btoa(`admin:${admin}`)}` }, is: null },
    "the token without a scheme": { headers: { authorization: admin }, is: null },
    "two headers": { headers: { authorization: `Bearer ${admin}, Bearer ${admin}` }, is: null },
    garbage: { headers: bearer("%%%"), is: null },
    "a text of a token's form": { headers: bearer(`dbk_${"a".repeat(10)}_${"A".repeat(43)}`), is: null },
    "the public id of a token": { headers: bearer(admin.slice(0, 14)), is: null },
    "a truncated token": { headers: bearer(admin.slice(0, -1)), is: null },
    "a token and a letter": { headers: bearer(`${admin}a`), is: null },
    "a token in capitals": { headers: bearer(admin.toUpperCase()), is: null },
    "a token with another's id": { headers: bearer(`${operate.slice(0, 15)}${admin.slice(15)}`), is: null },
    "a long header": { headers: bearer("a".repeat(5000)), is: null },
    "an expired token": { headers: bearer(expired), is: null },
    "a revoked token": { headers: bearer(revoked), is: null },
    "a token in the address": { headers: {}, query: `token=${admin}`, is: null },
    "a token as a cookie": { headers: cookie(admin), is: null },
    "a cookie as a token": { headers: bearer(live), is: null },
    "a link as a token": { headers: bearer(await access.link()), is: null },
    "a link as a cookie": { headers: cookie(await access.link()), is: null },
    "a link that was used": { headers: bearer(link), is: null },
    "a dead cookie": { headers: cookie(dead), is: null },
    "a cookie of a revoked token": { headers: cookie(revokedCookie), is: null },
    "a cookie of an expired token": { headers: cookie(expiredCookie), is: null },
    "a truncated cookie": { headers: cookie(live.slice(0, -1)), is: null },
    "a cookie of another name": { headers: { cookie: `daybook=${live}` }, is: null },
    "a live cookie beside an unknown token": { headers: { ...cookie(live), ...bearer("dbk_nobody") }, is: null },
  };
}

test("what is open to everybody is open, and every other route is in the matrix", async (t) => {
  const { book } = await openTest(t, "sqlite", { worker: false });
  const app = createApp(book);
  cleanup(t, () => app.close());
  const link = await book.access.link();
  const ask = async (route: string, body?: string): Promise<number> => {
    const [method = "", path = ""] = route.split(" ");
    const headers = { "content-type": "application/json" };
    const given = body === undefined ? {} : { body, headers };
    return (await app.fetch(new Request(`${origin}${path}`, { method, ...given }))).status;
  };

  assert.deepEqual(Object.keys(others).toSorted(), Object.keys(extraRoutes).toSorted());
  for (const [route, { open }] of Object.entries(extraRoutes)) {
    assert.equal(others[route] === null, open === true || route.endsWith("/logout"), route);
  }
  assert.deepEqual(
    await Promise.all([
      ask("GET /health/live"),
      ask("GET /health/ready"),
      ask(`GET ${apiPrefix}/openapi.json`),
      ask("GET /"),
    ]),
    [200, 200, 200, 200],
  );
  assert.equal(await ask(`POST ${apiPrefix}/logout`), 204);
  assert.equal(await ask(`POST ${apiPrefix}/login`, "{}"), 400);
  assert.equal(await ask(`POST ${apiPrefix}/login`, '{"token":"dbk_nobody"}'), 401);
  // A link that lets somebody in is used up.
  assert.deepEqual([await ask(`GET /login/${link}`), await ask(`GET /login/${link}`)], [303, 401]);
});
