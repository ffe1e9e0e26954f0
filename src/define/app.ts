// app(): a named bundle of listeners and schedules, with the verbs that its setup gets from this front door.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { defineApp, type AnyApp, type AppOptions, type OnError } from "../apps/define.ts";
import type { IfExists } from "../apps/registration.ts";
import type { Book } from "../book/book.ts";
import type { Duration } from "../core/duration.ts";
import type { TimeInput } from "../core/time.ts";
import type { Heard, PayloadOf } from "../events/define.ts";
import type { LiveOptions } from "../events/live/define.ts";
import type { JobContext } from "./job.ts";
import type { Job, JobOptions, EnqueueOptions } from "../jobs/define.ts";
import type { LiveListenerContext } from "./listener.ts";
import type { Policies } from "../schedules/options.ts";
import type { TimingOptions } from "../schedules/timing/timing.ts";

/** What every registration says. */
export type RegistrationOptions = {
  /** Its identity within the instance, which history follows across restarts. */
  readonly name: string;
  /** When the name is taken in this instance: refuse it (`"error"`, the default), keep the one before if it is set to the
   *  same (`"skip"`), or put this one in its place (`"replace"`). */
  readonly ifExists?: IfExists;
  /** Told of its errors, in place of the app's own. */
  readonly onError?: OnError;
};

type OnOptions<Payload> = RegistrationOptions &
  Omit<LiveOptions<Payload, LiveListenerContext>, "on" | "live" | "tenants" | "run">;

type OnHandler<Payload> = (payload: Payload, context: LiveListenerContext) => unknown;

/** How a schedule of an app is set: as any schedule, with the settings of its job. It is tried once unless `attempts` says
 *  otherwise. */
export type AppScheduleOptions<Params> = RegistrationOptions &
  TimingOptions &
  Policies &
  Pick<JobOptions<Params, unknown, never>, "attempts" | "backoff" | "timeout" | "losses"> &
  Pick<EnqueueOptions, "queue" | "priority" | "tags"> & {
    /** What the handler is given. It stays in memory, so it may be anything; default `{}`. */
    readonly params?: Params;
  };

type Handler<Params> = (params: Params, context: JobContext) => unknown;

type ScheduleVerb<When, More = object> = {
  <Params = Record<string, never>>(
    when: When,
    options: AppScheduleOptions<Params> & More,
    handler: Handler<NoInfer<Params>>,
  ): App;
  <Params = Record<string, never>>(
    when: When,
    options: AppScheduleOptions<Params> & More & { readonly run: Handler<NoInfer<Params>> },
  ): App;
};

type AppJobOptions<Params> = RegistrationOptions & Omit<JobOptions<Params, unknown, never>, "params" | "run">;

/** What a setup is given. All but `job` can be chained. */
export type App = {
  readonly key: string;
  /** The index of this instance among the app's. */
  readonly instance: number;
  readonly tenant: string;
  /** That of its schedules that name none. */
  readonly zone: string;
  /** Aborted when the instance stops. */
  readonly signal: AbortSignal;
  readonly book: Book;
  /** A live listener: it hears what is emitted in this process and what any process publishes. */
  on<const On extends Heard | readonly Heard[], Payload = PayloadOf<On>>(
    on: On,
    options: OnOptions<NoInfer<Payload>>,
    handler: OnHandler<Payload>,
  ): App;
  on<const On extends Heard | readonly Heard[], Payload = PayloadOf<On>>(
    on: On,
    options: OnOptions<NoInfer<Payload>> & { readonly run: OnHandler<Payload> },
  ): App;
  /** Every day at `"07:00"` on the clock of `zone`. */
  readonly daily: ScheduleVerb<string>;
  readonly every: ScheduleVerb<Duration, { readonly anchor?: TimeInput }>;
  readonly cron: ScheduleVerb<string>;
  /** Once, so long after it was first registered. */
  readonly in: ScheduleVerb<Duration>;
  readonly once: ScheduleVerb<TimeInput>;
  /** Work that this instance does when it is enqueued: `book.jobs.enqueue(dim, { level: 3 }, { in: "10m" })`. */
  job<Params = unknown, Result = unknown>(
    options: AppJobOptions<Params> & { readonly params?: undefined },
    handler: (params: Params, context: JobContext) => Promise<Result> | Result,
  ): Job<Params, Result>;
  job<Schema extends StandardSchemaV1 = StandardSchemaV1<unknown, never>, Result = unknown>(
    options: AppJobOptions<StandardSchemaV1.InferOutput<Schema>> & { readonly params?: Schema },
    handler: (params: StandardSchemaV1.InferOutput<Schema>, context: JobContext) => Promise<Result> | Result,
  ): Job<StandardSchemaV1.InferInput<Schema>, Result>;
  /** Called when the instance stops, and when its setup fails; the last one first. */
  onStop(run: () => unknown): void;
};

// The compiler complains about the last of several signatures, so the last one takes what is meant most often.
/** Without a schema the config is what the instances are given, and nothing checks it. */
export function app<Config = Record<string, never>>(
  key: string,
  options: AppOptions<Config, App, Config> & { readonly config?: undefined },
): AnyApp;
/** Defines an app: what `setup` registers, each of its instances does.
 *
 *  ```ts
 *  const lights = app("lights", {
 *    config: z.object({ room: z.string() }),
 *    instances: [{ room: "hall" }, { room: "kitchen" }],
 *    setup(home, { room }) {
 *      home.on(`motion.${room}`, { name: "light on", throttle: "1m" }, () => console.log(`${room}: light on`));
 *      home.daily("23:00", { name: "light off", zone: "Europe/Oslo" }, () => console.log(`${room}: light off`));
 *    },
 *  });
 *  await using home = await open(":memory:", { use: [lights] });
 *  ``` */
export function app<Schema extends StandardSchemaV1 = StandardSchemaV1<unknown, never>>(
  key: string,
  options: AppOptions<StandardSchemaV1.InferInput<Schema>, App, StandardSchemaV1.InferOutput<Schema>> & {
    /** Checks and types the config of each instance. Any Standard Schema: zod, valibot, arktype … */
    readonly config?: Schema;
  },
): AnyApp;
export function app(
  key: string,
  options: AppOptions<unknown, never, never> & { readonly config?: StandardSchemaV1 | undefined },
): AnyApp {
  return defineApp(key, options);
}
