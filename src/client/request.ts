// What a caller gives a verb, as the request that carries it: each field has one place, in the path, the query or the body.
import { DaybookError } from "../core/daybook-error.ts";
import type { Asked } from "./send.ts";

export type RouteOf = {
  readonly route: string;
  readonly places: readonly string[];
  readonly times: readonly string[];
  readonly durations: readonly string[];
  readonly lists: readonly string[];
  readonly answer: "json" | "text" | "lines" | "stream";
};

type Input = Readonly<Record<string, unknown>>;

/** `called` is the verb as its caller knows it, for messages. */
export function requestOf(called: string, of: RouteOf, given: Input): Asked {
  const [method = "", template = ""] = of.route.split(" ");
  const left = new Map(Object.entries(given).map(([name, value]) => [name, fieldOf(called, of, name, value)]));
  const path = template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = left.get(name);
    left.delete(name);
    return segment(called, name, value);
  });
  if (method === "GET") return { method, path: `/api/v1${path}${queryOf(called, left)}` };
  return { method, path: `/api/v1${path}`, body: written(called, Object.fromEntries(left)) };
}

function fieldOf(called: string, of: RouteOf, name: string, value: unknown): unknown {
  // What is undefined was not given on purpose: a slip must not mean everything.
  if (value === undefined) throw refused(`${called} is given ${name}: undefined; leave it out`);
  if (of.times.includes(name)) return timeText(value);
  if (of.durations.includes(name)) return typeof value === "number" ? `${value}ms` : value;
  if (of.lists.includes(name)) return listOf(value);
  // A definition stands for its name; a document of the user's may have one, too.
  return name === "type" && isNamed(value) ? value.name : value;
}

/** A time may be what an answer gave. */
function timeText(value: unknown): unknown {
  const ms: unknown = typeof value === "object" && value !== null ? Reflect.get(value, "epochMilliseconds") : undefined;
  const given = typeof ms === "number" ? ms : value;
  if (typeof given !== "number" && !(given instanceof Date)) return value;
  const date = new Date(given);
  return Number.isNaN(date.getTime()) ? String(given) : date.toISOString();
}

/** The key of a record may be a text, or the ends of a relation. */
function listOf(value: unknown): unknown {
  if (typeof value === "string") return [value];
  if (typeof value !== "object" || value === null || !("from" in value) || !("to" in value)) return value;
  const { from, to, instance } = value as { from: unknown; to: unknown; instance?: unknown };
  return instance === undefined ? [from, to] : [from, to, instance];
}

export function isNamed(value: unknown): value is { readonly name: string } {
  return typeof value === "object" && value !== null && "name" in value && typeof value.name === "string";
}

function segment(called: string, name: string, value: unknown): string {
  if (typeof value !== "string" && typeof value !== "number") throw refused(`${called} needs ${name}, a text`);
  const text = String(value);
  // An address with these would mean another one.
  if (text === "" || text === "." || text === "..")
    throw refused(`${name} is ${JSON.stringify(text)}: no address has that`);
  return encoded(name, text);
}

function queryOf(called: string, fields: ReadonlyMap<string, unknown>): string {
  const parts = [...fields].flatMap(([name, value]) => {
    if (!Array.isArray(value)) return [`${name}=${textOf(called, name, value)}`];
    if (value.length === 0) throw refused(`${called} is given no ${name}: name one, or leave it out`);
    return value.map((each) => `${name}=${textOf(called, name, each)}`);
  });
  return parts.length === 0 ? "" : `?${parts.join("&")}`;
}

function textOf(called: string, name: string, value: unknown): string {
  return encoded(name, typeof value === "string" ? value : written(called, value));
}

function encoded(name: string, text: string): string {
  try {
    return encodeURIComponent(text);
  } catch (cause) {
    throw new DaybookError("invalid", `${name} has half of a character (a lone surrogate) in it`, { cause });
  }
}

/** JSON would make null of what is no number, and nothing of a function. */
function written(called: string, value: unknown): string {
  return JSON.stringify(value, (name, each: unknown) => {
    const isFine =
      typeof each === "number" ? Number.isFinite(each) : !["function", "symbol", "bigint"].includes(typeof each);
    if (isFine) return each;
    throw refused(`${called} is given ${name}: ${String(each)}, which is no JSON`);
  });
}

function refused(message: string): DaybookError {
  return new DaybookError("invalid", message);
}
