// The apps of one open book: this process's instances of them.
import { DaybookError, invalid } from "../core/error.ts";
import { noSuch } from "../core/suggest.ts";
import { checkAppKey, type AnyApp } from "./define.ts";
import { startInstance, type AppsWiring, type Instance, type PendingEvents } from "./instance.ts";
import { letGo, surplusOf } from "./remove.ts";

export type AppsHere = {
  /** Sets up all instances of all apps. An instance that fails does not stop the others. */
  start(apps: readonly AnyApp[]): Promise<void>;
  /** Stops the instances of an app, if it runs here, and sets them up again, with a new definition if one is given. */
  reload(app: AnyApp | string): Promise<readonly PendingEvents[]>;
  stop(key: string): Promise<readonly PendingEvents[]>;
  close(): Promise<void>;
};

type Hosted = { readonly app: AnyApp; readonly instances: readonly Instance[] };

/** All apps of a book belong to one tenant. */
export function openApps(wiring: AppsWiring, tenant: string): AppsHere {
  const hosted = new Map<string, Hosted>();
  // Changes of one app run one after another; different apps do not wait for each other.
  const changes = new Map<string, Promise<void>>();
  let closed = false;

  function change<T>(key: string, run: () => Promise<T>): Promise<T> {
    const before = changes.get(key) ?? Promise.resolve();
    const done = before.then(run);
    changes.set(
      key,
      done.then(
        () => undefined,
        () => undefined,
      ),
    );
    return done;
  }

  async function setUp(app: AnyApp, before: readonly Instance[]): Promise<void> {
    if (closed) throw new DaybookError("closed", "the book is closed or closing");
    const { key } = app;
    const instances = await Promise.all(
      app.instances.map((_config, instance) =>
        startInstance(wiring, app, { tenant, app: key, instance }, before[instance]?.acted),
      ),
    );
    hosted.set(key, { app, instances });
    if (instances.every(({ failed }) => !failed)) await retireSurplus(app, before);
  }

  // An app with fewer instances than before: the surplus ones register nothing any more.
  async function retireSurplus({ key, instances }: AnyApp, before: readonly Instance[]): Promise<void> {
    for (const instance of await surplusOf(wiring.engine.store, tenant, key, instances.length)) {
      await letGo(wiring.engine, { tenant, app: key, instance }, { acted: before[instance]?.acted ?? [] });
    }
  }

  async function stopAll({ instances }: Hosted): Promise<PendingEvents[]> {
    return (await Promise.all(instances.map((each) => each.stop()))).flat();
  }

  return {
    async start(apps) {
      await Promise.all(apps.map((app) => change(app.key, () => setUp(app, []))));
    },
    reload: (given) => {
      const key = typeof given === "string" ? checkAppKey(given) : given.key;
      return change(key, async () => {
        const before = hosted.get(key);
        const app = typeof given === "string" ? before?.app : given;
        if (app === undefined) throw notHere(key, [...hosted.keys()]);
        const pending = before === undefined ? [] : await stopAll(before);
        await setUp(app, before?.instances ?? []);
        return pending;
      });
    },
    stop: (key) =>
      change(checkAppKey(key), async () => {
        const found = hosted.get(key);
        if (found === undefined) throw notHere(key, [...hosted.keys()]);
        return stopAll(found);
      }),
    async close() {
      closed = true;
      await Promise.all(changes.values());
      await Promise.all([...hosted.values()].map(stopAll));
    },
  };
}

function notHere(key: string, known: readonly string[]): DaybookError {
  return noSuch("this process does not run the app", key, known, { app: key });
}

/** The apps of a list; two apps with one key are refused. */
export function collectApps(use: readonly { readonly kind: string }[]): readonly AnyApp[] {
  const found = new Map<string, AnyApp>();
  for (const each of use) {
    if (!isApp(each)) continue;
    if ((found.get(each.key) ?? each) !== each)
      throw invalid(`two apps in "use" have the key "${each.key}": rename one`);
    found.set(each.key, each);
  }
  return [...found.values()];
}

function isApp(value: { readonly kind: string }): value is AnyApp {
  return value.kind === "app";
}
