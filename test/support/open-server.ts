// A server in this process, without a port, on a book of its own.
import type { TestContext } from "node:test";
import { open, type Book, type OpenOptions } from "../../src/index.ts";
import { createApp, type App, type AppOptions } from "../../src/server/app.ts";
import { cleanup, openTest, type Backend } from "./open-test.ts";

export type Role = "read" | "operate" | "admin" | "worker";

export type Ask = {
  readonly body?: unknown;
  readonly token?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
};

export type TestServer = {
  readonly app: App;
  readonly book: Book;
  readonly url: string;
  /** The same book as another program has it open, which takes names of jobs on trust. */
  another(): Promise<Book>;
  /** Tokens of the tenant "default" by role, and one of the whole book. */
  readonly tokens: Readonly<Record<Role | "book", string>>;
  token(of: { readonly role: Role; readonly tenant?: string }): Promise<string>;
  /** Asks as an operator, unless it says as whom. */
  ask(method: string, path: string, ask?: Ask): Promise<Response>;
  /** The JSON of what is answered with 200 or 202; throws what else there is. */
  json<T>(method: string, path: string, ask?: Ask): Promise<T>;
};

export const origin = "http://127.0.0.1";

export async function openServer(
  t: TestContext,
  backend: Backend,
  { app: appOptions = {}, ...options }: OpenOptions & { app?: AppOptions } = {},
): Promise<TestServer> {
  const { book, url } = await openTest(t, backend, options);
  const app = createApp(book, appOptions);
  cleanup(t, () => app.close());
  const token: TestServer["token"] = async ({ role, tenant }) =>
    (await book.tokens.create({ role, tenant: tenant ?? null })).secret;
  const tokens = {
    read: await token({ role: "read", tenant: "default" }),
    operate: await token({ role: "operate", tenant: "default" }),
    admin: await token({ role: "admin", tenant: "default" }),
    worker: await token({ role: "worker", tenant: "default" }),
    book: await token({ role: "admin" }),
  };
  const ask: TestServer["ask"] = (method, path, { body, token: given = tokens.operate, headers = {}, signal } = {}) => {
    const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
    return app.fetch(
      new Request(`${origin}${path.startsWith("/health") || path.startsWith("/login/") ? path : `/api/v1${path}`}`, {
        method,
        headers: {
          ...(given === "" ? {} : { authorization: `Bearer ${given}` }),
          ...(text === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        ...(text === undefined ? {} : { body: text }),
        ...(signal === undefined ? {} : { signal }),
      }),
    );
  };
  async function json<T>(method: string, path: string, given?: Ask): Promise<T> {
    const response = await ask(method, path, given);
    const text = await response.text();
    if (response.status === 200 || response.status === 202) return JSON.parse(text) as T;
    throw new Error(`${method} ${path} answered ${response.status}: ${text}`);
  }
  const another = async (): Promise<Book> => {
    const opened = await open(url, { attach: false, worker: false });
    cleanup(t, () => opened.close());
    return opened;
  };
  return { app, book, url, another, tokens, token, ask, json };
}

export type Sent = { readonly event: string; readonly id: string | null; readonly data: unknown };

/** What a stream of server-sent events says, one after the other. */
export async function* readStream(response: Response): AsyncGenerator<Sent> {
  let text = "";
  for await (const chunk of (response.body ?? new ReadableStream()).pipeThrough(new TextDecoderStream())) {
    text += chunk;
    for (let end = text.indexOf("\n\n"); end !== -1; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const field = (name: string): string | null =>
        lines.find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2) ?? null;
      const data = field("data");
      if (data !== null) yield { event: field("event") ?? "message", id: field("id"), data: JSON.parse(data) };
    }
  }
}
