// What a server sends as it happens: server-sent events, each with an item in its data, and lines.
import { DaybookError } from "../../core/error.ts";
import { parseReply, problemError, type Connection, type Problem } from "./connection.ts";
import type { ServerRequest } from "./request.ts";

/** The items of a stream, as they stand on the wire. What was missed while a connection was lost cannot be had, so it is an error and
 *  never a gap that nobody sees. */
export async function* itemsOf(connection: Connection, request: ServerRequest): AsyncGenerator<unknown> {
  const { server } = connection;
  for await (const { name, data } of eventsIn(linesOf(connection, request))) {
    const said = parseReply(server, data);
    if (name === "end") return;
    if (name === "error") throw problemError(said as Problem, server.url);
    if (name === "slow") throw new DaybookError("unavailable", `${server.url} let us go: we read too slowly`);
    yield said;
  }
  throw new DaybookError(
    "unavailable",
    `${server.url} ended the stream: follow it again, and list what came in between`,
  );
}

type ServerEvent = { readonly name: string; readonly data: string };

/** Fields that are not known are left alone: comments such as the heartbeat, and what a later server adds. */
async function* eventsIn(lines: AsyncIterable<string>): AsyncGenerator<ServerEvent> {
  let name = "message";
  let data: string[] = [];
  for await (const line of lines) {
    const [, field, value = ""] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (line === "") {
      if (data.length > 0) yield { name, data: data.join("\n") };
      [name, data] = ["message", []];
    } else if (field === "event") name = value;
    else if (field === "data") data.push(value);
  }
}

/** Lines of a reply, each as it comes. */
export async function* linesOf(connection: Connection, request: ServerRequest): AsyncGenerator<string> {
  const { url } = connection.server;
  const response = await connection.listen(request);
  const body = response.body as AsyncIterable<Uint8Array> | null;
  const decoder = new TextDecoder();
  let rest = "";
  try {
    for await (const chunk of body ?? []) {
      const parts = (rest + decoder.decode(chunk, { stream: true })).split(/\r?\n/);
      rest = parts.pop() ?? "";
      yield* parts;
    }
  } catch (cause) {
    if (cause instanceof DaybookError) throw cause;
    throw new DaybookError("unavailable", `the connection to ${url} was lost`, { cause, details: { server: url } });
  }
  if (rest !== "") yield rest;
}
