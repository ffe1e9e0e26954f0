// What is refused before anybody is asked who they are: requests for another host (DNS rebinding) and changes that another site's
// page sends (CSRF). There is no CORS: a page of another origin reads nothing.
import { DaybookError } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { HttpRefusal } from "./problem.ts";

/** On every answer. A page that is served beside the API has a policy of its own. */
export const headersOfAll: Readonly<Record<string, string>> = {
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cross-origin-resource-policy": "same-origin",
  "cross-origin-opener-policy": "same-origin",
  "referrer-policy": "no-referrer",
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
};

export const loopbackHosts = ["localhost", "127.0.0.1", "[::1]"] as const;

export type Guard = (request: { readonly method: string; readonly url: string; readonly headers: Headers }) => void;

/** `hosts`: the names by which it may be asked, any port; `origins`: pages of other origins that may change things. */
export function createGuard({ hosts, origins }: { hosts: readonly string[]; origins: readonly string[] }): Guard {
  const known = new Set(hosts.map((each) => each.toLowerCase()));
  const trusted = new Set(origins);
  // Few hosts are asked for, each of them often.
  const passed = new Set<string>();

  function pass(host: string): void {
    if (passed.has(host)) return;
    if (!known.has(host.toLowerCase().replace(/:\d{1,5}$/, ""))) {
      const advice = "ask for one of its hosts, or allow it (hosts)";
      throw new DaybookError("forbidden", `this server is not ${quote(host)}: ${advice}`);
    }
    if (passed.size < passedMax) passed.add(host);
  }

  return ({ method, url, headers }) => {
    const named = authorityOf(url);
    const host = headers.get("host") ?? named;
    // A request line may name another host than the header, and some proxy may go by that one.
    pass(host);
    if (named !== host) pass(named);
    if (method === "GET" || method === "HEAD") return;
    const origin = headers.get("origin");
    if (origin !== null && !trusted.has(origin) && URL.parse(origin)?.host !== host) {
      throw new DaybookError("forbidden", `a page of ${quote(origin)} may change nothing here: allow it (origins)`);
    }
    if (origin === null && headers.get("sec-fetch-site") === "cross-site") {
      throw new DaybookError("forbidden", "a page of another site may change nothing here");
    }
  };
}

const passedMax = 100;

// Parsing an address costs more than the rest of the guard.
function authorityOf(url: string): string {
  const from = url.indexOf("//") + 2;
  const to = url.indexOf("/", from);
  return url.slice(from, to === -1 ? undefined : to);
}

/** For what has no end, or works once: HEAD is a GET whose body nobody takes, so it would hold the one and use up the other. */
export function refuseHead({ method, url }: Pick<Request, "method" | "url">): void {
  if (method !== "HEAD") return;
  throw new HttpRefusal(405, "invalid", `${new URL(url).pathname} takes GET, not HEAD`, { allow: "GET" });
}
