// The only way to data: the verbs of the server that gave this page, asked with the cookie of the login.
import { signal } from "@preact/signals";
import { readAnswer } from "../../client/answer.ts";
import { requestOf, type RouteOf } from "../../client/request.ts";
import { routes } from "../../client/routes.ts";
import { send, type Asked, type CallOptions, type Wire } from "../../client/send.ts";
import type { VerbAnswer, VerbInput, VerbKey } from "../../client/verbs.ts";
import { waitAnywhere } from "../../core/anywhere.ts";
import { DaybookError } from "../../core/daybook-error.ts";
import { hearServerTime } from "./clock.ts";
import { readExactly } from "./exact.ts";

/** The path below which the dashboard stands, without a slash at its end. */
export const prefix = new URL(".", document.baseURI).pathname.replace(/\/$/, "");

/** The tenant that is looked at, for logins of the whole book; null means the login's own. */
export const tenant = signal<string | null>(new URLSearchParams(location.search).get("tenant"));

/** Whether the last answer said that nobody is logged in. */
export const isLoggedOut = signal(false);

export function wire(): Wire {
  return {
    base: location.origin + prefix,
    attempts: 2,
    timeoutMs: 40_000,
    fetch: fetchHere,
    ...(tenant.value === null ? {} : { tenant: tenant.value }),
  };
}

async function fetchHere(request: Request): Promise<Response> {
  const response = await fetch(request);
  hearServerTime(response.headers.get("date"));
  if (response.status === 401) isLoggedOut.value = true;
  else if (response.ok) isLoggedOut.value = false;
  return response;
}

export function routeOf(verb: VerbKey): RouteOf {
  const [noun = "", name = ""] = verb.split(".");
  const of = (routes as Readonly<Record<string, Readonly<Record<string, RouteOf>>>>)[noun]?.[name];
  if (of === undefined) throw new DaybookError("invalid", `there is no verb ${verb}`);
  return of;
}

/** What is asked, as the request that asks it. */
export function requestFor<Key extends VerbKey>(verb: Key, input: VerbInput<Key>): Asked {
  return requestOf(verb, routeOf(verb), given(input));
}

export type Progress = { readonly done: number; readonly total: number | null };

export type AskOptions = CallOptions & { readonly onProgress?: (progress: Progress) => void };

/** Asks a verb. What goes on in the server for minutes is waited for. */
export async function ask<Key extends VerbKey>(
  verb: Key,
  input: VerbInput<Key>,
  { onProgress, ...options }: AskOptions = {},
): Promise<VerbAnswer<Key>> {
  const of = routeOf(verb);
  const { status, text } = await send(wire(), requestFor(verb, input), options);
  if (of.answer === "text") return text as VerbAnswer<Key>;
  if (status === 202) {
    const { id } = JSON.parse(text) as { readonly id: string };
    return (await endOf(verb, id, onProgress, options.signal)) as VerbAnswer<Key>;
  }
  return (status === 204 ? undefined : readAnswer(verb, readExactly(text))) as VerbAnswer<Key>;
}

async function endOf(
  verb: VerbKey,
  id: string,
  onProgress: ((progress: Progress) => void) | undefined,
  signal: AbortSignal | undefined,
): Promise<unknown> {
  for (;;) {
    const { status, done, total, result, error } = await ask("operations.show", { id }, signal ? { signal } : {});
    onProgress?.({ done, total });
    if (status === "completed") return readAnswer(verb, result);
    if (status !== "running") {
      throw new DaybookError("conflict", error?.message ?? `${verb} is ${status}`, { details: { operation: id } });
    }
    await waitAnywhere(300, signal);
  }
}

/** Without what is undefined or empty, which a page means as "not given". */
function given(input: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(input).filter(([, value]) => value !== undefined && value !== ""));
}

export type Caller = {
  readonly name: string;
  readonly tenant: string | null;
  readonly role: "read" | "operate" | "admin" | "worker";
};

/** Who is logged in, or null until that is known. */
export const caller = signal<Caller | null>(null);

export async function readCaller(): Promise<void> {
  const { text } = await send(wire(), { method: "GET", path: "/api/v1/caller" });
  caller.value = JSON.parse(text) as Caller;
}

export async function logIn(token: string): Promise<void> {
  const body = JSON.stringify({ token });
  await send(wire(), { method: "POST", path: "/api/v1/login", body });
  isLoggedOut.value = false;
  await readCaller();
}

export async function logOut(): Promise<void> {
  await send(wire(), { method: "POST", path: "/api/v1/logout" });
  caller.value = null;
  isLoggedOut.value = true;
}

const ranks = { worker: 0, read: 1, operate: 2, admin: 3 } as const;

/** Why this login may not do what needs that role, or undefined when it may. */
export function whyNot(needs: "read" | "operate" | "admin", of: "tenant" | "book" = "tenant"): string | undefined {
  const known = caller.value;
  if (known === null) return "You are not logged in";
  if (ranks[known.role] < ranks[needs]) return `Needs the role ${needs}; your login has ${known.role}`;
  if (of === "book" && known.tenant !== null) return "Needs a login of the whole book";
  return undefined;
}
