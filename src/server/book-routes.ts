// The routes of one book: the verbs, the names that other designs gave some of them, the stream, logins and what a monitor asks.
//
// A request of the API is first that of somebody: its caller is identified, then the policy says whether the verb is theirs.
import type { Context, Hono } from "hono";
import type { Caller } from "../access/caller.ts";
import type { Book } from "../book/book.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { roomsOf } from "../open/rooms.ts";
import type { Outputs } from "../verbs/wire.ts";
import { aliases } from "./aliases.ts";
import type { AppOptions, Asker } from "./app.ts";
import { countFailures, credentialOf, identify, unknownCaller, type Credential } from "./caller.ts";
import { describeServer } from "./document.ts";
import { headersOfAll } from "./guard.ts";
import { openLiveStreams } from "./live-stream.ts";
import { addLogin } from "./login.ts";
import { addMonitoring } from "./monitoring.ts";
import { createOpenStreams } from "./open-streams.ts";
import { mayCall, refuseCall } from "./policy.ts";
import { HttpRefusal, tellFailure } from "./problem.ts";
import { everyRoute, patternOf, routeOf, type Route } from "./routes.ts";
import { runRoute } from "./run-route.ts";
import { createScheduler, type Scheduler } from "./scheduler.ts";
import { serveBook, type ServedBook } from "./served-book.ts";

export type Router = Hono<{ Bindings: Required<Asker> }>;
export type Asking = Context<{ Bindings: Required<Asker> }>;

export type BookRoutes = {
  addTo(router: Router): Promise<void>;
  link(): Promise<string>;
  readonly scheduler: Scheduler;
  readonly served: ServedBook;
  close(): Promise<void>;
};

type Options = AppOptions & { readonly prefix: string };

/** Who asks for what: the caller, how they were known, and the tenant that they named or are bound to. */
export type Known = { readonly caller: Caller; readonly credential: Credential; readonly tenant: string | null };

/** `same`: the same book, which stands under another name as well. */
export function openBookRoutes(book: Book, options: Options, same?: BookRoutes): BookRoutes {
  const served = same?.served ?? serveBook(book);
  const scheduler = same?.scheduler ?? createScheduler(book);
  const { access } = book;
  const { store } = roomsOf(book);
  const streams = createOpenStreams();
  const live = openLiveStreams(store);
  const failures = countFailures();
  const base = `${options.prefix}/api/v1`;

  async function known({ req, env }: Asking): Promise<Known> {
    const credential = credentialOf(req.raw.headers);
    if (credential === undefined) throw unknownCaller("nobody is named");
    const caller = await identify(access, credential);
    if (caller === null) return failures.refuse(env.address, `the ${credential.kind} is unknown, expired or revoked`);
    return { caller, credential, tenant: tenantOf(caller, req.raw.headers.get("daybook-tenant")) };
  }

  /** The whole book is shown to who looks after all of it, and names no tenant. */
  function handleFor({ caller, tenant }: Known): Book {
    if (tenant === null && caller.role === "admin") return served.whole;
    return served.tenant(tenant ?? book.tenantId);
  }

  async function run(context: Asking, route: Route, outputs: Outputs, tenant?: string): Promise<Response> {
    const found = await known(context);
    const { caller, credential } = found;
    const whose = tenant === undefined ? found : { ...found, tenant: tenantOf(caller, tenant) };
    const { verb } = route;
    if (!mayCall(verb, caller)) throw refuseCall(verb, caller);
    if (options.readOnly === true && verb.role !== "read") {
      throw new DaybookError("forbidden", "this server is read-only: change the book by another way");
    }
    const { req, env } = context;
    return runRoute({
      route,
      request: req.raw,
      param: (name) => req.param(name) ?? "",
      caller,
      book: verb.of === "book" ? served.whole : handleFor(whose),
      tenant: whose.tenant,
      access,
      requestId: env.requestId,
      from: env.address,
      base,
      outputs,
      streams,
      stillKnown: async () => (await identify(access, credential)) !== null,
      failed: (error) => tellFailure(options.log, error, env.requestId),
    });
  }

  return {
    served,
    scheduler,
    async addTo(router) {
      const outputs = await readOutputs();
      const routes = await everyRoute();
      const methods = new Map<string, Set<string>>();
      const add = (method: string, path: string, answer: (context: Asking) => Promise<Response>): void => {
        const pattern = `${base}${patternOf(path)}`;
        router.on(method, pattern, answer);
        methods.set(pattern, (methods.get(pattern) ?? new Set()).add(method));
      };
      addLogin(router, add, { access, known, failures, prefix: options.prefix, base, secure: options.secure });
      addMonitoring(router, { book, streams, known, handleFor, prefix: options.prefix, scheduler });
      add("GET", "/stream", async (context) => {
        const found = await known(context);
        if (!mayCall({ role: "read" }, found.caller)) throw refuseCall({ role: "read", words: "stream" }, found.caller);
        const stream = streams.open(async () => (await identify(access, found.credential)) !== null);
        return live.open(found.tenant ?? book.tenantId, context.req.raw, stream);
      });
      for (const [path, act] of [["start", scheduler.start], ["stop", scheduler.stop], ["status", scheduler.status]] as const) {
        add(path === "status" ? "GET" : "POST", `/scheduler/${path}`, async (context) => {
          const found = await known(context);
          const asked = { role: "admin", of: "book", words: `scheduler ${path}` } as const;
          if (!mayCall(asked, found.caller)) throw refuseCall(asked, found.caller);
          return Response.json(await act(), { headers: headersOfAll });
        });
      }
      let document: Promise<string> | undefined;
      add("GET", "/openapi.json", async () => {
        const text = await (document ??= describeServer(outputs, options.prefix));
        return new Response(text, { headers: { ...headersOfAll, "content-type": "application/json" } });
      });
      for (const alias of aliases) {
        const meant = routes.find(({ key }) => key === alias.key);
        if (meant === undefined) continue;
        const route = routeOf(meant.key, meant.verb, `${alias.method} ${alias.path}`);
        if (route === undefined) continue;
        const inPath = route.inPath.filter((name) => name !== "tenant");
        add(alias.method, alias.path, async (context) => {
          const answer = await run(context, { ...route, inPath }, outputs, context.req.param("tenant") ?? "");
          return alias.accepted === true ? accepted(answer, context.req.path) : answer;
        });
      }
      // What is written out comes before what a place would take as well: `/events/replay` before `/events/{id}`.
      const ordered = routes.toSorted((a, b) => a.inPath.length - b.inPath.length);
      for (const route of ordered) add(route.method, route.path, (context) => run(context, route, outputs));
      for (const [pattern, allowed] of methods) {
        router.all(pattern, ({ req }) => {
          const allow = [...allowed, ...(allowed.has("GET") ? ["HEAD"] : [])].join(", ");
          throw new HttpRefusal(405, "invalid", `${req.path} takes ${allow}, not ${req.method}`, { allow });
        });
      }
    },
    link: () => access.link({ role: "admin", tenant: null }),
    async close() {
      streams.close();
      live.close();
      await scheduler.stop();
    },
  };
}

function tenantOf({ tenant }: Caller, named: string | null): string | null {
  if (named === null || named === tenant) return tenant;
  if (tenant !== null) throw new DaybookError("forbidden", `this token is not of the tenant ${quote(named)}`);
  return named;
}

async function accepted(answer: Response, path: string): Promise<Response> {
  if (answer.status !== 200) return answer;
  const text = await answer.text();
  const { id } = JSON.parse(text) as { id?: unknown };
  if (typeof id !== "string") throw invalid("what was accepted has no id");
  const headers = new Headers(answer.headers);
  headers.set("location", `${path}/${encodeURIComponent(id)}`);
  return new Response(text, { status: 202, headers });
}

async function readOutputs(): Promise<Outputs> {
  const { default: made } = (await import("../verbs/outputs.json", { with: { type: "json" } })) as { default: Outputs };
  return made;
}
