// A server that answers as a test says, for what no real one does on demand: connections that are cut, replies that are late.
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";

export type Heard = {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
};

/** `cut`: the connection ends after what was said, which may be nothing. */
export type Said = {
  readonly status?: number;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly cut?: true;
};

/** Each request is answered by the next of `script`, the last of which is for all others. */
export async function scriptedServer(
  t: TestContext,
  ...script: readonly Said[]
): Promise<{ url: string; heard: Heard[] }> {
  const heard: Heard[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const { method = "", url: path = "", headers } = request;
      const said = script[Math.min(heard.length, script.length - 1)] ?? {};
      heard.push({ method, path, headers, body: await text(request) });
      if (said.cut === true && said.body === undefined) {
        request.socket.destroy();
        return;
      }
      const type = (said.status ?? 200) >= 400 ? "application/problem+json" : "application/json";
      response.writeHead(said.status ?? 200, { "content-type": type, ...said.headers });
      if (said.cut === true) response.write(said.body, () => request.socket.destroy());
      else response.end(said.body ?? "");
    })();
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, heard };
}

export function json(value: unknown, status = 200): Said {
  return { status, body: JSON.stringify(value) };
}

export function problem(status: number, code: string, detail: string, details?: object): Said {
  return json({ type: "about:blank", title: code, status, code, detail, ...(details && { details }) }, status);
}
