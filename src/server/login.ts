// Logins of browsers: by a token that is typed in, or by a link that works once. What the browser keeps is a cookie that no script
// can read and that no other site's page can send.
import type { Access } from "../access/access.ts";
import { isPlain } from "../core/json.ts";
import { invalid } from "../core/error.ts";
import { parseJson } from "../core/parse-json.ts";
import { systemClock } from "../core/clock.ts";
import type { Add, Asking, Router } from "./book-routes.ts";
import { cookieName, credentialOf, identify } from "./caller.ts";
import type { Gate, Known } from "./gate.ts";
import { headersOfAll, refuseHead } from "./guard.ts";
import { readText } from "./read-input.ts";
import { audited, plainEntry } from "./run-audited.ts";

type Parts = {
  readonly access: Access;
  readonly gate: Gate;
  readonly prefix: string;
  readonly secure: boolean | undefined;
};

export function addLogin(router: Router, add: Add, { access, gate, prefix, secure }: Parts): void {
  async function logIn({ req, env }: Asking, secret: string): Promise<{ cookie: string; login: unknown }> {
    const found = await access.login(secret);
    if (found === null)
      return gate.failures.refuse(env.address, "the token or link is unknown, expired, revoked or was used before");
    const { cookie, caller, expiresAt } = found;
    await audited(plainEntry("login", caller, env), access, async () => undefined);
    const seconds = Math.max(0, Math.floor((expiresAt - systemClock.now()) / 1000));
    return { cookie: cookieOf(cookie, seconds, secure ?? req.url.startsWith("https:"), prefix), login: told(caller) };
  }

  add("POST", "/login", async (context) => {
    const body = parseJson(await readText(context.req.raw), { what: "the body" });
    const token = isPlain(body) ? body["token"] : undefined;
    if (typeof token !== "string" || token.length > 500)
      throw invalid('the body has no token: give {"token": "dbk_…"}');
    const { cookie, login } = await logIn(context, token);
    return Response.json(login, { headers: { ...headersOfAll, "cache-control": "no-store", "set-cookie": cookie } });
  });

  router.get(`${prefix}/login/:secret`, async (context) => {
    refuseHead(context.req.raw);
    const { cookie } = await logIn(context, context.req.param("secret"));
    return new Response(null, {
      status: 303,
      headers: { ...headersOfAll, "cache-control": "no-store", "set-cookie": cookie, location: `${prefix}/` },
    });
  });

  add("POST", "/logout", async (context) => {
    const credential = credentialOf(context.req.raw.headers);
    if (credential?.kind === "cookie") {
      const caller = await identify(access, credential);
      const leave = (): Promise<void> => access.logout(credential.secret);
      await (caller === null ? leave() : audited(plainEntry("logout", caller, context.env), access, leave));
    }
    const cookie = cookieOf("", 0, secure ?? context.req.url.startsWith("https:"), prefix);
    return new Response(null, { status: 204, headers: { ...headersOfAll, "set-cookie": cookie } });
  });

  add("GET", "/caller", async (context) => {
    const { caller, tenant } = await gate.known(context);
    return Response.json({ ...told(caller), tenant }, { headers: { ...headersOfAll, "cache-control": "no-store" } });
  });
}

function told({ name, tenant, role, queues, names }: Known["caller"]): Omit<Known["caller"], "tokenId"> {
  return { name, tenant, role, queues, names };
}

function cookieOf(value: string, seconds: number, isSecure: boolean, prefix: string): string {
  const path = prefix === "" ? "/" : prefix;
  return `${cookieName}=${value}; Path=${path}; HttpOnly; SameSite=Strict; Max-Age=${seconds}${isSecure ? "; Secure" : ""}`;
}
