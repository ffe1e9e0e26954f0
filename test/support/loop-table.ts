// Runs the verbs of the table at their worst inputs and says which of them hold the loop, whichever way they come in.
import type { TestContext } from "node:test";
import { everyVerb } from "../../src/verbs/table.ts";
import { readRoute } from "../../src/verbs/route.ts";
import { checkInput, type Verb } from "../../src/verbs/verb.ts";
import { requestOf } from "../../src/cli/remote/request.ts";
import { systemClock } from "../../src/core/clock.ts";
import { isDaybookError, type Book } from "../../src/index.ts";
import { createApp, type App } from "../../src/server/app.ts";
import { longestPieceMs, pieceMsMax } from "./loop-work.ts";
import { cleanup, type Backend } from "./open-test.ts";
import { openWorst, worstJson, type World } from "./worst-book.ts";
import { worst, worstCalls } from "./worst-inputs.ts";
import type { Asked, Make } from "./worst-makes.ts";

export const verbs = new Map<string, Verb>(await everyVerb());

/** Of the worst documents. */
const slightest = "one long text";

export type Held = { readonly what: string; readonly ms: number; readonly refused?: string };

/** Every verb at its worst inputs over a book of so many rows, asked by a program that has the book and by a request to a server: for
 *  how long it held the loop, or why it was refused. A slice has one large document only, leaves out what takes long to make, and
 *  asks over HTTP what can be asked so, because a request is all that the program's call is, and more. */
export async function holdsOf(
  t: TestContext,
  backend: Backend,
  many: number,
  { isSlice = false } = {},
): Promise<Held[]> {
  const world = await openWorst(t, backend, many, isSlice ? [slightest] : undefined);
  const serve = servers(t);
  const held: Held[] = [];
  for (const [key, row] of Object.entries(worst)) {
    const verb = verbs.get(key);
    // A book on PostgreSQL is backed up by its own programs.
    if (verb === undefined || (backend === "postgres" && copies.has(key))) continue;
    const ways: readonly Way[] = readRoute(verb) === undefined ? [asProgram] : [asProgram, overHttp(serve, world)];
    for (const [how, make] of Object.entries(row)) {
      if (isSlice && takesLong.test(how)) continue;
      for (const way of isSlice ? ways.slice(-1) : ways) {
        const what = `${backend}: ${key}, ${how}${way === asProgram ? "" : ", over HTTP"}`;
        held.push({ what, ...(await holdOf(world, verb, make, way)) });
      }
    }
  }
  for (const [what, call] of Object.entries(worstCalls)) {
    held.push({ what: `${backend}: ${what}`, ...(await leastOf(async () => () => call(world).then(() => undefined))) });
  }
  return held;
}

const copies = new Set(["book.backup", "backups.create"]);

const takesLong = new RegExp(
  Object.keys(worstJson)
    .filter((name) => name !== slightest)
    .join("|") + "|large|many words",
);

export function heldTooLong(held: readonly Held[]): Held[] {
  return held.filter(({ ms, refused }) => refused !== undefined || ms >= pieceMsMax);
}

/** Makes ready what asks a verb once. Undefined: it cannot be asked in this way. */
type Way = (book: Book, verb: Verb, input: Asked["input"]) => Promise<(() => Promise<void>) | undefined>;

function holdOf(world: World, verb: Verb, make: Make, way: Way): Promise<Omit<Held, "what">> {
  return leastOf(async () => {
    const made = await make(world);
    const { on = world.book, input, meanwhile }: Asked = "input" in made ? (made as Asked) : { input: made };
    const ask = await way(on, verb, input);
    return ask === undefined ? undefined : () => beside(ask, meanwhile);
  });
}

// What holds the loop does so every time; what is compiled or collected just then, does not.
async function leastOf(makeReady: () => Promise<(() => Promise<void>) | undefined>): Promise<Omit<Held, "what">> {
  let ms = Infinity;
  for (let attempt = 0; attempt < 3 && ms >= pieceMsMax; attempt++) {
    const work = await makeReady();
    if (work === undefined) return { ms: 0 };
    try {
      ms = Math.min(ms, await longestPieceMs(work));
    } catch (error) {
      return { ms, refused: String(error).slice(0, 300) };
    }
  }
  return { ms };
}

async function beside(ask: () => Promise<void>, meanwhile: Asked["meanwhile"]): Promise<void> {
  let going = true;
  const answered = ask().finally(() => (going = false));
  while (going && meanwhile !== undefined) {
    await meanwhile();
    await systemClock.sleep(100);
  }
  await answered;
}

/** The input is checked, and what comes bit by bit is taken to its end. A read may end by its deadline. */
const asProgram: Way = async (book, verb, input) => async () => {
  const call = { signal: new AbortController().signal, tenant: null };
  try {
    const given = await verb.run(book, checkInput(verb, input), call);
    if (verb.stream === true || verb.lines === true) for await (const _ of given as AsyncIterable<unknown>) continue;
  } catch (error) {
    if (!isDaybookError(error) || error.code !== "timeout") throw error;
  }
};

type Server = { readonly app: App; readonly admin: string };

/** A server of each book. */
function servers(t: TestContext): (book: Book) => Promise<Server> {
  const opened = new Map<Book, Promise<Server>>();
  async function openServer(book: Book): Promise<Server> {
    const app = createApp(book);
    cleanup(t, () => app.close());
    const { secret: admin } = await book.tokens.create({ role: "admin", tenant: null });
    return { app, admin };
  }
  return (book) => {
    const server = opened.get(book) ?? openServer(book);
    opened.set(book, server);
    return server;
  };
}

/** A server takes no longer head. */
const pathMax = 15_000;

function overHttp(serve: (book: Book) => Promise<Server>, { worker }: World): Way {
  return async (book, verb, input) => {
    const { app, admin } = await serve(book);
    const { method, path, body } = requestOf(verb, input);
    if (path.length > pathMax) return undefined;
    const authorization = `Bearer ${verb.role === "worker" ? worker.secret : admin}`;
    const headers = { authorization, "content-type": "application/json" };
    const make = (to: string, more: RequestInit): Request => new Request(`http://127.0.0.1${to}`, { headers, ...more });
    const request = make(`/api/v1${path}`, { method, ...(body === undefined ? {} : { body }) });
    return async () => {
      const response = await app.fetch(request);
      const text = await response.text();
      const operation = response.headers.get("location") ?? "";
      if (response.status === 202) return ended(() => app.fetch(make(operation, {})));
      if (response.status >= 400 && !text.includes('"code":"timeout"')) throw new Error(`${response.status} ${text}`);
    };
  };
}

/** Until a long operation has ended. */
async function ended(look: () => Promise<Response>): Promise<void> {
  for (;;) {
    const { status, error } = (await (await look()).json()) as { status: string; error?: unknown };
    if (status === "completed") return;
    if (status !== "running") throw new Error(`the operation is ${status}: ${JSON.stringify(error)}`);
    await systemClock.sleep(20);
  }
}
