// A request with an Idempotency-Key takes effect once: its reply is kept and given to whoever sends the same again.
import { createHash } from "node:crypto";
import type { Access } from "../access/access.ts";
import type { Caller } from "../access/caller.ts";
import { conflict, invalid, warnOf } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { HttpRefusal } from "./problem.ts";

export type Reply = {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
};

export const keyHeader = "idempotency-key";
const replayedHeader = "idempotency-replayed";

export function keyOf(headers: Headers): string | undefined {
  const key = headers.get(keyHeader);
  if (key === null) return undefined;
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key;
  throw invalid(`Idempotency-Key is ${quote(key)}: give 1 to 255 printable characters of ASCII, without spaces`);
}

type Keyed = {
  readonly key: string;
  readonly caller: Caller;
  readonly tenant: string;
  readonly route: string;
  readonly body: string;
};

/** `make` makes the reply; it never throws. What the server could not do is forgotten, so that it may be tried again. */
export async function keptReply(
  { replies }: Pick<Access, "replies">,
  { key, caller, tenant, route, body }: Keyed,
  make: () => Promise<Reply>,
): Promise<Reply> {
  const bodyHash = createHash("sha256").update(route).update("\0").update(body).digest("base64url");
  const begun = await replies.begin({ tenant, tokenId: caller.tokenId ?? "link", key, route, bodyHash });
  if (begun.state === "done") {
    return { status: begun.status, headers: { ...begun.headers, [replayedHeader]: "true" }, body: begun.body };
  }
  if (begun.state === "other") {
    throw conflict(`the Idempotency-Key ${quote(key)} was used for another request: use a new one`, { key });
  }
  if (begun.state === "busy") {
    const why = `the request with the Idempotency-Key ${quote(key)} is under way: ask again in a moment`;
    throw new HttpRefusal(409, "conflict", why, { "retry-after": "1" });
  }
  const reply = await make();
  // Of a `busy` or an outage nothing happened; what may have happened keeps its key.
  const settled = isNothingDone(reply) ? replies.drop(begun.id) : replies.finish(begun.id, reply);
  // What was done is said also if that cannot be kept: whoever asks again is told that it is under way, and it is not done twice.
  await settled.catch((error: unknown) => warnOf("DAYBOOK_REPLY", `the reply to ${route} could not be kept`, error));
  return reply;
}

function isNothingDone({ status, body }: Reply): boolean {
  return status >= 500 && !body.includes('"code":"unknown_outcome"');
}
