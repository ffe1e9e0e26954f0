// Who sends a request: the holder of a token, or of the cookie that a login gave.
import type { Access } from "../access/access.ts";
import type { Caller } from "../access/caller.ts";
import { systemClock } from "../core/clock.ts";
import { HttpRefusal } from "./problem.ts";

export const cookieName = "daybook_login";

export type Credential = { readonly kind: "token" | "cookie"; readonly secret: string };

/** Undefined when the request brings none. What is there and no credential of ours is refused, not passed over. */
export function credentialOf(headers: Headers): Credential | undefined {
  const authorization = headers.get("authorization");
  if (authorization !== null) {
    const [, secret] = /^Bearer ([\w.~+/=-]{1,500})$/i.exec(authorization) ?? [];
    // Two headers arrive as one text with a comma: which of them is meant is not for us to guess.
    if (secret === undefined) throw unknownCaller('the header "Authorization" is not "Bearer <token>", given once');
    return { kind: "token", secret };
  }
  const cookies = headers.get("cookie");
  const [, secret] =
    cookies === null ? [] : (new RegExp(`(?:^|; ?)${cookieName}=([\\w-]{1,500})(?:;|$)`).exec(cookies) ?? []);
  return secret === undefined ? undefined : { kind: "cookie", secret };
}

export function identify(access: Access, { kind, secret }: Credential): Promise<Caller | null> {
  return kind === "token" ? access.identify(secret) : access.identifyCookie(secret);
}

export function unknownCaller(why: string): HttpRefusal {
  return new HttpRefusal(401, "unauthorized", `${why}: give a token of this book (daybook tokens create)`, {
    "www-authenticate": "Bearer",
  });
}

/** How many failures one address may have in a minute before it is told to wait. */
const failuresMax = 20;
const windowMs = 60_000;
/** Addresses that are remembered at once: who sends from more of them is not stopped by counting. */
const addressesMax = 10_000;

export type Failures = { refuse(address: string, why: string): never };

/** Counts logins and tokens that were refused, by the address they came from. Who is known is never kept waiting. */
export function countFailures(): Failures {
  const failures = new Map<string, { count: number; sinceMs: number }>();
  return {
    refuse(address, why) {
      const nowMs = systemClock.monotonic();
      const known = failures.get(address);
      const current = known === undefined || nowMs - known.sinceMs > windowMs ? { count: 0, sinceMs: nowMs } : known;
      current.count++;
      failures.delete(address);
      failures.set(address, current);
      const [oldest] = failures.keys();
      if (failures.size > addressesMax && oldest !== undefined) failures.delete(oldest);
      if (current.count <= failuresMax) throw unknownCaller(why);
      const seconds = Math.max(1, Math.ceil((current.sinceMs + windowMs - nowMs) / 1000));
      throw new HttpRefusal(429, "busy", `too many failures from this address: wait ${seconds} s`, {
        "retry-after": String(seconds),
      });
    },
  };
}
