// The routes of one book: the verbs, the names that other designs gave some of them, the stream, logins, tools for assistants, and what
// a monitor asks.
import type { Context, Hono } from "hono";
import type { Book } from "../book/book.ts";
import { DaybookError } from "../core/error.ts";
import { roomsOf } from "../open/rooms.ts";
import { apiPrefix } from "../verbs/route.ts";
import type { Outputs } from "../verbs/wire.ts";
import type { AppOptions, Asker } from "./app.ts";
import { addDashboardFiles } from "./dashboard-files.ts";
import { addDocument } from "./document.ts";
import { createGate, type Known } from "./gate.ts";
import { headersOfAll, refuseHead } from "./guard.ts";
import { openLiveStreams } from "./live-stream.ts";
import { addLogin } from "./login.ts";
import { addMcp } from "./mcp-route.ts";
import { addMonitoring } from "./monitoring.ts";
import { createOpenStreams } from "./open-streams.ts";
import { HttpRefusal, tellFailure } from "./problem.ts";
import { audited, plainEntry } from "./run-audited.ts";
import { aliasRoutes, everyRoute, patternOf, type VerbRoute } from "./routes.ts";
import { runRoute, type Asked } from "./run-route.ts";
import { createShare, requestsMaxDefault } from "./share.ts";
import { createScheduler, type Scheduler } from "./scheduler.ts";

export type Router = Hono<{ Bindings: Required<Asker> }>;
export type Asking = Context<{ Bindings: Required<Asker> }>;
export type Add = (method: string, path: string, answer: (context: Asking) => Promise<Response>) => void;

export type BookRoutes = {
  addTo(router: Router): Promise<void>;
  link(): Promise<string>;
  readonly scheduler: Scheduler;
  close(): Promise<void>;
};

type Options = AppOptions & { readonly prefix: string };

/** `same`: the same book, which stands under another name as well. */
export function openBookRoutes(book: Book, options: Options, same?: BookRoutes): BookRoutes {
  const { prefix, log } = options;
  const { access } = book;
  const scheduler = same?.scheduler ?? createScheduler(book);
  const streams = createOpenStreams();
  const ending = new AbortController();
  const live = openLiveStreams(roomsOf(book).store);
  const gate = createGate(book, options);
  const share = createShare(options.requestsMax ?? requestsMaxDefault);
  const base = `${prefix}${apiPrefix}`;

  async function run(context: Asking, route: VerbRoute, outputs: Outputs, tenant?: string): Promise<Response> {
    const found = await gate.admit(context, route.verb, tenant);
    return share.take(found.tenant ?? book.tenantId, () => runRoute(asked(context, found, route, outputs)));
  }

  /** What a request of this caller for a verb is run with. */
  function asked({ req, env }: Asking, found: Known, route: VerbRoute, outputs: Outputs): Asked {
    const { verb, key } = route;
    return {
      route,
      key,
      verb,
      access,
      base,
      outputs,
      streams,
      request: req.raw,
      param: (name) => req.param(name) ?? "",
      caller: found.caller,
      tenant: found.tenant,
      book: gate.bookFor(verb, found),
      ending: ending.signal,
      requestId: env.requestId,
      from: env.address,
      stillKnown: () => gate.stillKnown(found),
      failed: (error) => tellFailure(log, error, env.requestId),
    };
  }

  function addStream(add: Add): void {
    add("GET", "/stream", async (context) => {
      refuseHead(context.req.raw);
      const found = await gate.admit(context, { role: "read", words: "stream" });
      const stream = streams.open(() => gate.stillKnown(found));
      return live.open(found.tenant ?? book.tenantId, context.req.raw, stream);
    });
  }

  function addScheduler(add: Add): void {
    const acts = { start: scheduler.start, stop: scheduler.stop, status: async () => scheduler.status() };
    for (const [word, act] of Object.entries(acts)) {
      const isChange = word !== "status";
      add(isChange ? "POST" : "GET", `/scheduler/${word}`, async (context) => {
        const { caller } = await gate.admit(context, { role: "admin", of: "book", words: `scheduler ${word}` });
        const entry = plainEntry(`scheduler.${word}`, caller, context.env);
        const said = await (isChange ? audited(entry, access, act) : act());
        return Response.json(said, { headers: { ...headersOfAll, "cache-control": "no-store" } });
      });
    }
  }

  return {
    scheduler,
    async addTo(router) {
      const outputs = await readOutputs();
      const routes = await everyRoute();
      const methods = new Map<string, Set<string>>();
      const add: Add = (method, path, answer) => {
        const pattern = `${base}${patternOf(path)}`;
        router.on(method, pattern, answer);
        methods.set(pattern, (methods.get(pattern) ?? new Set()).add(method));
      };
      addDocument(add, { prefix, outputs });
      addLogin(router, add, { access, gate, prefix, secure: options.secure });
      addMonitoring(router, { book, streams, gate, prefix, scheduler });
      addMcp(router, {
        allow: options.readOnly === true ? "read" : (options.mcp ?? "read"),
        prefix,
        gate,
        ask: (context, found, route) => asked(context, found, route, outputs),
        failed: (error, { env }) => tellFailure(log, error, env.requestId),
      });
      addStream(add);
      addScheduler(add);
      for (const route of aliasRoutes(routes)) {
        add(route.method, route.path, async (context) => {
          const answer = await run(context, route, outputs, context.req.param("tenant") ?? "");
          return route.alias.accepted === true ? accepted(answer, context.req.path) : answer;
        });
      }
      for (const route of routes) add(route.method, route.path, (context) => run(context, route, outputs));
      addDashboardFiles(router, { prefix });
      for (const [pattern, allowed] of methods) {
        router.all(pattern, ({ req }) => {
          const allow = [...allowed, ...(allowed.has("GET") ? ["HEAD"] : [])].join(", ");
          throw new HttpRefusal(405, "invalid", `${req.path} takes ${allow}, not ${req.method}`, { allow });
        });
      }
    },
    link: () => access.link({ role: "admin", tenant: null }),
    async close() {
      ending.abort();
      streams.close();
      live.close();
      await scheduler.stop();
    },
  };
}

async function accepted(answer: Response, path: string): Promise<Response> {
  if (answer.status !== 200) return answer;
  const text = await answer.text();
  const { id } = JSON.parse(text) as { id?: unknown };
  if (typeof id !== "string") throw new DaybookError("internal", "what was accepted has no id");
  const headers = new Headers(answer.headers);
  headers.set("location", `${path}/${encodeURIComponent(id)}`);
  return new Response(text, { status: 202, headers });
}

async function readOutputs(): Promise<Outputs> {
  const { default: made } = (await import("../verbs/outputs.json", { with: { type: "json" } })) as { default: Outputs };
  return made;
}
