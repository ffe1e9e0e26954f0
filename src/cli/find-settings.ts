// What the commands go by, found where they find it: options, the environment, the config of the project, the book, the defaults.
import { basename } from "node:path";
import { isDeepStrictEqual } from "node:util";
import type { Command } from "commander";
import { asDaybookError } from "../core/error.ts";
import { keyRing } from "../core/seal.ts";
import type { Configured } from "../define/config.ts";
import { retentionDefaults, retentionParts } from "../open/retention.ts";
import { roomsOf } from "../open/rooms.ts";
import { redactUrl } from "../storage/postgres/connect.ts";
import { readPolicy } from "../telemetry/retention/policy.ts";
import { findConfig, loadConfig } from "./load-definitions.ts";
import { looking, openBook } from "./with-book.ts";

export type Setting = {
  readonly name: string;
  readonly value: unknown;
  /** Null: nobody said it, and it has no default. */
  readonly from: string | null;
  /** What the book keeps, where that is another. */
  readonly book?: unknown;
};

/** The options that hold for every command, with the variable of the environment where there is one. */
const globals = [
  { name: "book", variable: "DAYBOOK_BOOK", show: hidePassword },
  { name: "server", variable: "DAYBOOK_SERVER", show: addressOf },
  { name: "token", variable: "DAYBOOK_TOKEN", show: hideToken },
  { name: "tenant", variable: "DAYBOOK_TENANT", show: String },
  { name: "schema", variable: null, show: String },
] as const;

export async function findSettings(command: Command, given: string | undefined): Promise<Setting[]> {
  const found = findConfig(given);
  const file = found === undefined ? "" : basename(found);
  const configured = await loadConfig(given);
  const said = globals.map((each) => globalOf(command, each));
  const isBook = said.some(({ name, value }) => name === "book" && value !== null);
  const kept = isBook ? await keptBy(command) : nothingKept;
  return [
    ...said,
    ...(kept.trouble === null ? [] : [{ name: "book cannot be read", value: kept.trouble, from: null }]),
    firstOf("config", [given === undefined ? "here" : "--config", found]),
    firstOf("zone", [file, configured?.zone], [theBook, kept.zone], ["default", "UTC"]),
    ...retentionParts.map((part) =>
      firstOf(
        `retention.${part}`,
        [file, configured?.retention?.[part]],
        [theBook, kept.retention[part]],
        ["default", retentionDefaults[part]],
      ),
    ),
    keyOf(configured, file),
    ...callsOf(configured, file),
    ...serverSettings(configured, file),
    ...instancesOf(configured, file),
    ...declaredBy(configured, file),
  ];
}

function globalOf(command: Command, { name, variable, show }: (typeof globals)[number]): Setting {
  const { [name]: value } = command.optsWithGlobals<Record<string, string | undefined>>();
  if (value === undefined || value === "") {
    return name === "schema" ? { name, value: "daybook", from: "default" } : { name, value: null, from: null };
  }
  const source = command.getOptionValueSourceWithGlobals(name);
  return { name, value: show(value), from: source === "cli" ? `--${name}` : source === "env" ? variable : "default" };
}

/** The first who said something. What the book keeps besides is what it goes by until a program with this config opens it. */
function firstOf(name: string, ...said: readonly (readonly [from: string, value: unknown])[]): Setting {
  const [first, second] = said.filter(([, each]) => each !== undefined && each !== null);
  const [from = null, value = null] = first ?? [];
  if (second?.[0] !== theBook || isDeepStrictEqual(value, second[1])) return { name, value, from };
  return { name, value, from, book: second[1] };
}

const theBook = "the book";

type Kept = {
  readonly zone: string | null;
  readonly retention: Readonly<Record<string, unknown>>;
  /** Why the book was not asked. */
  readonly trouble: string | null;
};

const nothingKept: Kept = { zone: null, retention: {}, trouble: null };

/** What the book itself says. It is only looked at, and one that is not there yet is no error. */
async function keptBy(command: Command): Promise<Kept> {
  try {
    await using book = await openBook(command, looking);
    const { zone } = await book.info();
    const retention = JSON.parse(await readPolicy(roomsOf(book).store)) as Kept["retention"];
    // Nobody knows whether UTC was said or is the default, and it is the same.
    return { ...nothingKept, zone: zone === "UTC" ? null : zone, retention };
  } catch (error) {
    return { ...nothingKept, trouble: asDaybookError(error).message };
  }
}

/** The id of the key that seals, which says nothing about the key. */
function keyOf(configured: Configured | undefined, file: string): Setting {
  const own = configured?.calls?.key;
  const key = own ?? process.env["DAYBOOK_KEY"];
  if (key === undefined || key === "") return { name: "key", value: null, from: null };
  return { name: "key", value: `key ${keyRing(key).id}`, from: own === undefined ? "DAYBOOK_KEY" : file };
}

function callsOf(configured: Configured | undefined, file: string): Setting[] {
  const { key: _key, ca, ...rest } = configured?.calls ?? {};
  const shown = Object.entries(rest).map(([name, value]): Setting => {
    return { name: `calls.${name}`, value: typeof value === "function" ? "a function" : value, from: file };
  });
  const trusted = ca === undefined ? [] : [{ name: "calls.ca", value: `${[ca].flat().length} given`, from: file }];
  return [...shown, ...trusted];
}

/** What `daybook serve` goes by. */
function serverSettings(configured: Configured | undefined, file: string): Setting[] {
  const { books = {}, ...rest } = configured?.server ?? {};
  return [
    ...Object.entries(books).map(([name, url]) => ({
      name: `server.books.${name}`,
      value: hidePassword(url),
      from: file,
    })),
    ...Object.entries(rest).map(([name, value]) => ({ name: `server.${name}`, value, from: file })),
  ];
}

/** How many, and no more: what an instance is given may be secret. */
function instancesOf(configured: Configured | undefined, file: string): Setting[] {
  return [...(configured?.apps ?? [])].map(([key, { length }]) => {
    return { name: `apps.${key}`, value: length === 1 ? "1 instance" : `${length} instances`, from: file };
  });
}

function declaredBy(configured: Configured | undefined, file: string): Setting[] {
  const names = (configured?.definitions ?? []).map((each) => {
    return "name" in each ? each.name : "key" in each ? each.key : each.topic;
  });
  return names.length === 0 ? [] : [{ name: "declared", value: names.join(", "), from: file }];
}

function hidePassword(address: string): string {
  if (!/^postgres(ql)?:/i.test(address)) return address;
  try {
    return redactUrl(address);
  } catch {
    // Where the password ends in it is not known.
    return "postgres://…";
  }
}

/** Whoever wrote a password into it is told so by the commands that use it. */
function addressOf(server: string): string {
  const url = URL.parse(server);
  return url === null ? "…" : `${url.protocol}//${url.host}${url.pathname}`;
}

/** The name of its file is no secret. */
function hideToken(token: string): string {
  return token.startsWith("@") ? token : `${/^[a-z]+_/.exec(token)?.[0] ?? ""}…`;
}
