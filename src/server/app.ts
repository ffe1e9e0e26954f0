// The server as one function from a request to its answer: it runs behind `daybook serve`, in any server that speaks fetch, and in
// tests without a port. Each book that it serves has its own routes, tokens and streams.
import { Hono } from "hono";
import type { Book } from "../book/book.ts";
import { systemClock } from "../core/clock.ts";
import { DaybookError, invalid } from "../core/error.ts";
import { checkName } from "../core/name.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { Logger } from "../open/log.ts";
import { roomsOf } from "../open/rooms.ts";
import { openBookRoutes, type BookRoutes } from "./book-routes.ts";
import { createGuard, headersOfAll, loopbackHosts } from "./guard.ts";
import { problemResponse, tellFailure } from "./problem.ts";
import { requestsMaxDefault } from "./share.ts";

export type AppOptions = {
  /** The host names by which it may be asked, without a port. Default: those of this machine alone (localhost, 127.0.0.1, [::1]). */
  readonly hosts?: readonly string[];
  /** Origins whose pages may change things, such as "https://ops.example". Default: none but its own. */
  readonly origins?: readonly string[];
  /** The path below which it stands in your server, such as "/daybook". */
  readonly prefix?: string;
  /** Refuses every change. */
  readonly readOnly?: boolean;
  /** What assistants may do at most at `/mcp`, whatever their tokens allow. Default: "read". */
  readonly mcp?: "read" | "operate" | "admin";
  /** Requests at once, streams not counted, half of them of one tenant; more are told to come again. Default 1000. */
  readonly requestsMax?: number;
  /** True: cookies are for HTTPS alone. Default: what the request came by. */
  readonly secure?: boolean;
  /** Where each request is said, and what went wrong on our side: pino and its like. */
  readonly log?: Logger;
};

/** Where a request came from; @hono/node-server hands this over by itself. */
export type From = {
  readonly address?: string;
  readonly incoming?: { readonly socket: { readonly remoteAddress?: string | undefined } };
};

export type App = {
  fetch(request: Request, from?: From): Promise<Response>;
  /** The secret of a link that lets its bearer log in once, as administrator of the book. */
  link(book?: string): Promise<string>;
  /** Starts and stops the work of this process on a book: `/scheduler/start` and `/scheduler/stop`. */
  start(): Promise<void>;
  /** Ends streams, refuses what comes, waits for what is under way. The books stay open. */
  close(): Promise<void>;
};

const known = ["hosts", "origins", "prefix", "readOnly", "mcp", "requestsMax", "secure", "log"] as const;

/** Makes the server of a book, or of several by their names: the first stands at `/api/v1`, each at `/books/<name>/api/v1`.
 *
 *  ```ts
 *  await using book = await open("shop.db");
 *  const app = createApp(book);
 *  const answer = await app.fetch(new Request("http://localhost/health/live"));
 *  console.log(answer.status); // 200
 *  await app.close();
 *  ``` */
export function createApp(given: Book | { readonly [name: string]: Book }, options: AppOptions = {}): App {
  refuseUnknown(options, known, "createApp");
  const { hosts = loopbackHosts, origins = [], requestsMax = requestsMaxDefault, log } = options;
  const prefix = checkPrefix(options.prefix ?? "");
  const guard = createGuard({ hosts, origins });
  const books = booksOf(given);
  const served = new Map<string, BookRoutes>();
  for (const [name, book] of books)
    served.set(name, openBookRoutes(book, { ...options, prefix: `${prefix}/books/${name}` }));
  const [first] = books;
  if (first === undefined) throw invalid("createApp is given no book: give what open() gave you");
  const [firstName, firstBook] = first;
  served.set("", openBookRoutes(firstBook, { ...options, prefix }, served.get(firstName)));
  let routing: Promise<Hono<{ Bindings: Required<Asker> }>> | undefined;
  let underWay = 0;
  let closed = false;
  let idle: (() => void) | undefined;

  async function route(): Promise<Hono<{ Bindings: Required<Asker> }>> {
    const router = new Hono<{ Bindings: Required<Asker> }>();
    for (const each of served.values()) await each.addTo(router);
    router.notFound((context) => {
      throw new DaybookError(
        "not_found",
        `there is no ${context.req.method} ${quote(context.req.path)}: see ${prefix}/api/v1/openapi.json`,
      );
    });
    router.onError((error, context) => refuse(error, context.env.requestId));
    return router;
  }

  function refuse(error: unknown, requestId: string): Response {
    tellFailure(log, error, requestId);
    return problemResponse(error, { ...headersOfAll, "x-request-id": requestId });
  }

  async function answer(request: Request, asker: Required<Asker>): Promise<Response> {
    try {
      if (closed) throw new DaybookError("closed", "the server is ending: ask again in a moment");
      if (underWay >= requestsMax)
        throw new DaybookError("busy", `${underWay} requests are under way: ask again in a moment`);
      guard(request);
      return await (await (routing ??= route())).fetch(request, asker);
    } catch (error) {
      return refuse(error, asker.requestId);
    }
  }

  return {
    async fetch(request, from = {}) {
      const address = from.address ?? from.incoming?.socket.remoteAddress ?? "";
      const beganMs = systemClock.monotonic();
      const asker = { address, requestId: roomsOf(firstBook).store.ids() };
      underWay++;
      try {
        const response = await answer(request, asker);
        if (log !== undefined) tell(log, request, response, { ...asker, ms: systemClock.monotonic() - beganMs });
        return response;
      } finally {
        underWay--;
        if (underWay === 0) idle?.();
      }
    },
    async link(name = "") {
      const found = served.get(name);
      if (found === undefined)
        throw invalid(`no book is served as ${quote(name)}: give one of ${[...served.keys()].join(", ")}`);
      return found.link();
    },
    async start() {
      for (const [name, each] of served) if (name !== "") await each.scheduler.start();
    },
    async close() {
      closed = true;
      for (const each of served.values()) await each.close();
      if (underWay > 0) await new Promise<void>((resolve) => (idle = resolve));
    },
  };
}

/** Who asks, as far as the connection says. */
export type Asker = { readonly address: string; readonly requestId: string };

function booksOf(given: Book | { readonly [name: string]: Book }): [string, Book][] {
  if ("location" in given && typeof given.location === "string") return [["default", given as Book]];
  return Object.entries(given as { readonly [name: string]: Book }).map(([name, book]) => {
    checkName(name, "the name of a book");
    if (!/^[\w-]+$/.test(name))
      throw invalid(`a book is served as ${quote(name)}: give a name of letters, digits, "_" and "-"`);
    return [name, book];
  });
}

function checkPrefix(prefix: string): string {
  if (prefix === "" || /^(\/[\w.~-]+)+$/.test(prefix)) return prefix;
  throw invalid(`prefix is ${quote(prefix)}: give a path such as "/daybook", without a slash at its end`);
}

type Told = Required<Asker> & { readonly ms: number };

// The path alone: a query may hold what is nobody else's business, and the path of a link holds its secret.
function tell(log: Logger, request: Request, { status }: Response, { address, requestId, ms }: Told): void {
  const path = new URL(request.url).pathname.replace(/\/login\/.+$/, "/login/…");
  const fields = { event: "http.request", method: request.method, path, status, ms: Math.round(ms), from: address };
  log[status >= 500 ? "error" : "info"]({ ...fields, request: requestId }, `${request.method} ${path} ${status}`);
}
