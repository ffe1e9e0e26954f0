// app.job(): work that belongs to an instance. It is enqueued by the definition that this makes.
import { defineJob, type AnyJob, type JobOptions } from "../jobs/define.ts";
import { watch, type Handler } from "./handler.ts";
import { nameOf } from "./identity.ts";
import { methodOf, type Registration, type Settings } from "./registration.ts";
import type { Asked, SetupParts } from "./setup.ts";
import { placeOf } from "./place.ts";

export function planJob(parts: SetupParts, { name, handler, options }: Asked): Omit<Registration, "site"> {
  const { onError, ...rest } = options as { onError?: never };
  const job = watchedJob(parts, { name, handler, onError, options: rest });
  return {
    ...{ name, handlerMethod: methodOf(handler), args: "[]", kwargs: "{}" },
    settings: jobSettings(job),
    does: { kind: "job", job },
  };
}

export type WatchedJob = {
  readonly name: string;
  readonly handler: Asked["handler"];
  readonly onError: unknown;
  readonly options: object;
};

/** The definition under the whole name, with the handler watched. */
export function watchedJob(parts: SetupParts, { name, handler, onError, options }: WatchedJob): AnyJob {
  const { place, told } = placeOf(parts, name, onError);
  const timeout = "timeout" in options && options.timeout !== undefined;
  const { run } = watch(handler as unknown as Handler, {
    ...{ onError: told, place, timeout },
    running: parts.running,
    acted: () => parts.acted(name),
  });
  const whole = nameOf({ ...parts.identity, name });
  const job = defineJob(whole, { ...(options as JobOptions<never, unknown, never>), run });
  return { ...job, owner: { app: place.app, instance: place.instance, registration: name } };
}

export function jobSettings({ queue, priority, attempts, timeoutMs, losses, concurrency, backoff }: AnyJob): Settings {
  return {
    ...{ queue, priority, attempts, timeoutMs, losses, concurrency },
    backoff: backoff === undefined ? null : JSON.stringify(backoff),
  };
}
