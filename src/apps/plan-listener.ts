// app.on(): a live listener that belongs to an instance.
import { invalid } from "../core/error.ts";
import { defineLive, type LiveDefinition, type LiveOptions } from "../events/live/define.ts";
import { ask } from "../events/live/where.ts";
import { watch, type Handler, type Watched } from "./handler.ts";
import { nameOf } from "./identity.ts";
import { placeOf } from "./place.ts";
import { methodOf, type Registration, type Settings } from "./registration.ts";
import type { Asked, SetupParts } from "./setup.ts";

export function planListener(
  parts: SetupParts,
  { name, handler, options }: Asked,
  on: unknown,
): Omit<Registration, "site"> {
  const { onError, ...rest } = options as { onError?: unknown };
  for (const fixed of ["on", "live", "tenants"]) {
    if (fixed in rest)
      throw invalid(`app.on ${JSON.stringify(name)} has the option "${fixed}", which is not its to say`);
  }
  const { place, told } = placeOf(parts, name, onError);
  const timeout = "timeout" in rest && rest.timeout !== undefined;
  const watched = watch(handler as unknown as Handler, {
    ...{ onError: told, place, timeout },
    acted: () => parts.acted(name),
  });
  const asked = { ...rest, on, live: true, run: watched.run } as LiveOptions<never, never>;
  const owner = { app: place.app, instance: place.instance, registration: name };
  const live = { ...defineLive(nameOf({ ...parts.identity, name }), asked), owner };
  return {
    ...{ name, handlerMethod: methodOf(handler), args: "[]", kwargs: "{}" },
    settings: settingsOf(live),
    does: { kind: "listener", live: { ...live, where: watchedWhere(live, watched) } },
  };
}

// A predicate that throws is an error of the listener, though its handler never began.
function watchedWhere({ where }: LiveDefinition, { failed }: Watched): LiveDefinition["where"] {
  if (where === null) return null;
  return {
    ...where,
    test(payload, seen) {
      try {
        return ask(where, payload, seen);
      } catch (error) {
        failed(error, null);
        throw error;
      }
    },
  };
}

function settingsOf(live: LiveDefinition): Settings {
  const { forMs, debounceMs, throttleMs, timeoutMs, once, immediate, priority, mode, concurrency, backlog } = live;
  return {
    topic: live.topics.join(", "),
    where: live.where === null ? null : live.where.describe(),
    ...{ forMs, debounceMs, throttleMs, timeoutMs, once, immediate, priority, mode },
    concurrency: mode === "parallel" ? concurrency : null,
    backlog: mode === "queued" ? backlog : null,
  };
}
