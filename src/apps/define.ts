// The definition of an app: a key, the configs of its instances, and a setup that registers what each instance does.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { durationMs, type Duration } from "../core/duration.ts";
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { isSchema } from "../core/standard-schema.ts";
import { refuseUnknown } from "../core/suggest.ts";
import { zoneOf } from "../schedules/timing/zone.ts";
import { callSite, type CallSite } from "./source.ts";

/** Where an error came from. `registration` is null when the setup failed. */
export type ErrorPlace = {
  readonly app: string;
  readonly instance: number;
  readonly registration: string | null;
  /** The run that failed; null when the setup did. */
  readonly runId: string | null;
};

/** Called with an error; the run is recorded as failed all the same. */
export type OnError = (error: unknown, place: ErrorPlace) => unknown;

/** `App` and `Config` are the arguments of `setup`; this room only passes them on. */
export type AppOptions<Input, App, Config> = {
  /** The config of each instance, in the order of their indexes; default one instance, with the config `{}`. */
  readonly instances?: readonly Input[];
  /** Registers what an instance listens to and when it acts. It must end within `timeout`. */
  readonly setup: (app: App, config: Config) => unknown;
  /** On whose clock its schedules go that name no zone: an IANA name such as "Europe/Madrid". Default: the book's, or else UTC. */
  readonly zone?: string;
  /** How long a setup may take; default 30 s. */
  readonly timeout?: Duration;
  /** Called with errors of handlers that have no `onError` of their own, and when a setup fails. */
  readonly onError?: OnError;
};

/** An app with any config, for lists of definitions. */
export type AnyApp = {
  readonly kind: "app";
  readonly key: string;
  readonly config: StandardSchemaV1 | undefined;
  readonly instances: readonly unknown[];
  readonly timeoutMs: number;
  readonly zone: string | undefined;
  readonly onError: OnError | undefined;
  /** Where it is defined. */
  readonly site: CallSite;
  readonly setup: (app: never, config: never) => unknown;
};

type Given = AppOptions<unknown, never, never> & { readonly config?: StandardSchemaV1 | undefined };

export function defineApp(key: string, options: Given): AnyApp {
  checkAppKey(key);
  const what = `app "${key}"`;
  refuseUnknown(options, ["config", "instances", "setup", "zone", "timeout", "onError"], what);
  const { config, instances, setup, zone, timeout, onError } = options;
  if (typeof setup !== "function") throw invalid(`${what} has no setup function: setup(app, config) { app.on(…) }`);
  if (onError !== undefined && typeof onError !== "function") {
    throw invalid(`onError of ${what} is ${quote(onError)}; it must be a function`);
  }
  if (config !== undefined && !isSchema(config)) {
    throw invalid(`the config of ${what} is no schema: give a Standard Schema (zod, valibot, arktype …)`);
  }
  return {
    kind: "app",
    key,
    config,
    setup,
    onError,
    zone: zone === undefined ? undefined : zoneOf(zone).name,
    site: callSite(),
    instances: checkInstances(key, instances ?? [{}]),
    timeoutMs: timeout === undefined ? limits.appSetupMs : durationMs(timeout, `timeout of ${what}`, { min: 1 }),
  };
}

/** The same app with the instances of a project's config. */
export function withInstances(app: AnyApp, instances: unknown): AnyApp {
  return { ...app, instances: checkInstances(app.key, instances) };
}

function checkInstances(key: string, instances: unknown): readonly unknown[] {
  if (!Array.isArray(instances)) {
    throw invalid(`the instances of app "${key}" are ${quote(instances)}: give a list with the config of each`);
  }
  if (instances.length <= limits.appInstancesMax) return instances;
  throw invalid(`app "${key}" has ${instances.length} instances; at most ${limits.appInstancesMax} are allowed`);
}

// The key appears in names and URLs, between slashes.
export function checkAppKey(key: unknown): string {
  if (typeof key === "string" && /^[\w.-]{1,64}$/.test(key)) return key;
  throw invalid(`app key ${quote(key)} must be 1 to 64 letters (a-z), digits or any of . _ -`);
}
