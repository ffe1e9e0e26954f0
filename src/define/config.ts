// daybook.config.ts: what a project declares once for every command of the command line. It is a module like any other, and
// its default export is this.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { callSettings, type CallOptions } from "../calls/room.ts";
import { asDaybookError, DaybookError, invalid } from "../core/error.ts";
import { isObject } from "../core/json.ts";
import { quote } from "../core/quote.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { command, type CommandOptions } from "../jobs/command/command.ts";
import type { AnyJob } from "../jobs/define.ts";
import { zoneOf } from "../schedules/timing/zone.ts";
import { checkRetention, type Retention } from "../open/retention.ts";
import { checkUse, type Definition } from "../open/use.ts";

/** The default export of `daybook.config.ts`.
 *
 *  `export default { use: [sendReceipt], commands: { list: { argv: ["ls", "--", "{folder}"] } } } satisfies Config;` */
export type Config = {
  /** Definitions, as `open` takes them. */
  readonly use?: readonly Definition[];
  /** Programs by the name of their job, as `command` takes them. */
  readonly commands?: Readonly<Record<string, ConfigCommand>>;
  /** The instances of apps by their key, in place of those in their definitions: `{ lights: { instances: [{ … }] } }`. */
  readonly apps?: Readonly<Record<string, { readonly instances: readonly unknown[] }>>;
  /** The zone of schedules that name none, as `open` takes it, for `daybook run`. */
  readonly zone?: string;
  /** Where calls may go and how many at once, as `open` takes it, for `daybook run`. The key belongs into `DAYBOOK_KEY`. */
  readonly calls?: CallOptions;
  /** How long things stay, as `open` takes it, for `daybook run`. */
  readonly retention?: Retention;
  /** For `daybook serve`. */
  readonly server?: ServerConfig;
};

export type ServerConfig = {
  /** The books to serve by their names, when no other is named: the first stands at `/api/v1`, each at `/books/<name>/api/v1`. */
  readonly books?: Readonly<Record<string, string>>;
  /** Host names by which it may be asked, besides those of its own machine. */
  readonly hosts?: readonly string[];
  /** Origins whose pages may change things. */
  readonly origins?: readonly string[];
};

/** What a config says, checked. */
export type Configured = {
  readonly definitions: readonly Definition[];
  readonly apps: ReadonlyMap<string, readonly unknown[]>;
  readonly calls: CallOptions | undefined;
  readonly zone: string | undefined;
  readonly retention: Retention | undefined;
  readonly server: ServerConfig | undefined;
};

export type ConfigCommand = Omit<CommandOptions<never>, "params"> & { readonly params?: StandardSchemaV1 };

const declare = command as unknown as (name: string, options: ConfigCommand) => AnyJob;

/** What is wrong with a config is said with its file. */
export function readConfig(file: string, config: unknown): Configured {
  try {
    if (!isObject(config)) {
      throw invalid(`its default export is ${quote(config)}: export default { use: […], commands: { … } }`);
    }
    refuseUnknown(config, ["use", "commands", "apps", "zone", "calls", "retention", "server"], "the config");
    const { use = [], commands = {}, apps = {}, zone, calls, retention, server } = config;
    if (!isObject(commands)) throw invalid(`"commands" is ${quote(commands)}: give { name: { argv: […] } }`);
    if (!isObject(apps)) throw invalid(`"apps" is ${quote(apps)}: give { key: { instances: [{ … }] } }`);
    if (calls !== undefined && !isObject(calls)) throw invalid(`"calls" is ${quote(calls)}: give { allow: […] }`);
    if (calls !== undefined) callSettings(calls);
    const definitions = [...checkUse(use), ...Object.entries(commands).map(([name, each]) => toJob(name, each))];
    const instances = new Map(Object.entries(apps).map(([key, each]) => [key, instancesOf(key, each)]));
    return {
      definitions,
      apps: instances,
      calls,
      zone: zone === undefined ? undefined : zoneOf(zone as string).name,
      retention: retention === undefined ? undefined : checkRetention(retention, "retention"),
      server: server === undefined ? undefined : checkServer(server),
    };
  } catch (error) {
    const { code, message, details } = asDaybookError(error);
    throw new DaybookError(code, `${file}: ${message}`, { cause: error, details: { ...details, path: file } });
  }
}

function checkServer(server: unknown): ServerConfig {
  if (!isObject(server)) throw invalid(`"server" is ${quote(server)}: give { books: { shop: "shop.db" } }`);
  refuseUnknown(server, ["books", "hosts", "origins"], "server");
  const { books = {}, hosts = [], origins = [] } = server;
  if (!isObject(books) || !Object.values(books).every((url) => typeof url === "string" && url !== "")) {
    throw invalid(
      `the books of "server" are ${quote(books)}: give their names and where they are, { shop: "shop.db" }`,
    );
  }
  for (const [name, list] of Object.entries({ hosts, origins })) {
    if (Array.isArray(list) && list.every((each) => typeof each === "string")) continue;
    throw invalid(`${name} of "server" is ${quote(list)}: give a list of texts`);
  }
  return server;
}

function toJob(name: string, options: unknown): AnyJob {
  if (!isObject(options)) throw invalid(`command "${name}" is ${quote(options)}: give { argv: ["program", …] }`);
  return declare(name, options as ConfigCommand);
}

function instancesOf(key: string, options: unknown): readonly unknown[] {
  if (!isObject(options)) throw invalid(`app "${key}" is ${quote(options)}: give { instances: [{ … }] }`);
  refuseUnknown(options, ["instances"], `app "${key}"`);
  const { instances } = options;
  if (Array.isArray(instances)) return instances as readonly unknown[];
  throw invalid(`the instances of app "${key}" are ${quote(instances)}: give a list with the config of each`);
}
