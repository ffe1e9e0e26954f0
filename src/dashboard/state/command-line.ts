// A verb and its input as a command that a shell runs.
import type { RouteOf } from "../../client/request.ts";
import { plainNouns } from "../../client/routes.ts";
import { commands } from "./commands.ts";
import { writeExactly } from "./exact.ts";

type Where = { readonly of: RouteOf; readonly server: string; readonly tenant: string | null };

export function commandLine(verb: string, given: ReadonlyMap<string, unknown>, { of, server, tenant }: Where): string {
  const [noun = "", name = ""] = verb.split(".");
  const { places = [], options = {}, json = [], choices = [], headers = [] } = commands[verb] ?? {};
  const textsOf = (field: string): string[] => {
    const value = given.get(field);
    if (json.includes(field)) return [writeExactly(value, 0)];
    if (of.times.includes(field) && typeof value === "number") return [new Date(value).toISOString()];
    if (of.durations.includes(field) && typeof value === "number") return [`${value}ms`];
    if (of.lists.includes(field) && Array.isArray(value)) return value.map(plainText);
    if (headers.includes(field))
      return Object.entries(value as object).map(([name, each]) => `${name}: ${plainText(each)}`);
    return [plainText(value)];
  };
  const words = [...(plainNouns.some((plain) => plain === noun) ? [] : [kebab(noun)]), kebab(name)];
  const args = places.flatMap((place) => (given.has(place) ? textsOf(place) : []));
  const named = [...given.keys()]
    .filter((field) => !places.includes(field))
    .flatMap((field) => {
      const option = options[field] ?? `--${kebab(field)}`;
      const value = given.get(field);
      if (value === true && !json.includes(field)) return [option];
      if (value === false && !json.includes(field)) return choices.includes(field) ? [`--no-${option.slice(2)}`] : [];
      return textsOf(field).map((text) => `${option}=${text}`);
    });
  const whose = tenant === null ? [] : [`--tenant=${tenant}`];
  // A place that begins with a dash would be read as an option.
  const end = args.some((arg) => arg.startsWith("-")) ? ["--"] : [];
  const all = end.length === 0 ? [...words, ...args, ...named, ...whose] : [...words, ...named, ...whose];
  return ["daybook", ...all, `--server=${server}`, ...(end.length === 0 ? [] : [...end, ...args])]
    .map(shellWord)
    .join(" ");
}

/** As fields that are neither lists nor JSON of any kind read them. A rate is `10/1m`, waits are `10s,1m`. */
function plainText(value: unknown): string {
  if (value === null) return "none";
  if (Array.isArray(value)) return value.map(plainText).join(",");
  if (typeof value === "string") return value;
  if (typeof value !== "object") return writeExactly(value, 0);
  const { max, per } = value as { readonly max?: unknown; readonly per?: unknown };
  return typeof max === "number" && per !== undefined ? `${max}/${plainText(per)}` : writeExactly(value, 0);
}

function kebab(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}

export function shellWord(text: string): string {
  return /^[\w./:@%+,=-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`;
}
