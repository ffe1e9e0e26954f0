// What a user does with apps, on the book.
import type { AppsHere } from "../apps/apps.ts";
import type { AnyApp } from "../apps/define.ts";
import type { PendingEvents } from "../apps/instance.ts";
import {
  listApps,
  listAppListeners,
  readApp,
  type AppDetails,
  type AppListener,
  type AppRecord,
} from "../apps/read-apps.ts";
import { removeApp, type AppRemoved } from "../apps/remove.ts";
import { invalid, notFound } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import type { Engine } from "../jobs/engine.ts";

export type Apps = {
  /** All apps of the tenant, by key, of whatever process. */
  list(): Promise<AppRecord[]>;
  /** One app, with what its instances registered and where in the source. */
  get(key: string): Promise<AppDetails>;
  /** The live listeners of all apps that run now, in whatever process. Those of this process, also without an app, are in
   *  `book.events.live()`. */
  listeners(): Promise<AppListener[]>;
  /** Stops the instances of an app in this process and sets them up again; with a definition, by that one, which may be
   *  new. An instance that fails does so alone: look at the answer. */
  reload(app: AnyApp | string): Promise<AppDetails & AppStopped>;
  /** Ends what an app registered that no program has any more: its schedules decide nothing further, and what they fired and nobody
   *  began is cancelled. What has run stays in the history. Refused while a process runs it.
   *
   *  `const { schedules } = await book.apps.remove("lights", { dryRun: true });` */
  remove(key: string, options?: { readonly dryRun?: boolean }): Promise<AppRemoved>;
  /** Stops the instances of an app in this process. What its schedules fire waits for a process that runs it. */
  stop(key: string): Promise<AppStopped>;
};

export type AppStopped = {
  /** What its listeners had heard and would have acted on later. It is lost, and each event that waited for its time (`debounce`,
   *  `for`) is a run that was skipped. */
  readonly pending: readonly PendingEvents[];
};

/** `here` are those that this process runs, if it runs any for this tenant; `seenBy` is the tenant that asks, or null for the owner of
 *  the whole book. */
export function appVerbs(
  engine: Engine,
  { tenant, seenBy }: { readonly tenant: string; readonly seenBy: string | null },
  here: AppsHere | undefined,
): Apps {
  const { store } = engine;
  const running = (key: string): AppsHere => {
    if (here !== undefined) return here;
    throw notFound(`this process runs no apps for tenant "${tenant}"`, { app: key, tenant });
  };
  return {
    list: () => listApps(store, tenant, seenBy),
    listeners: () => listAppListeners(store, tenant),
    get: (key) => readApp(store, tenant, key, seenBy),
    async reload(app) {
      const key = typeof app === "string" ? app : app?.key;
      if (typeof app !== "string" && (app?.kind !== "app" || !Array.isArray(app.instances))) {
        throw invalid(`the app is ${quote(app)}: give its key, or what app() made`);
      }
      const pending = await running(key).reload(app);
      return { ...(await readApp(store, tenant, key, seenBy)), pending };
    },
    remove: (key, options) => removeApp(engine, tenant, key, options),
    stop: async (key) => ({ pending: await running(key).stop(key) }),
  };
}
