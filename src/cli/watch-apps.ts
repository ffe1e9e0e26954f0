// daybook run --watch: an app whose file was edited, or one that it imports, is stopped and set up again, and the others are
// not disturbed.
import { watch, type FSWatcher } from "node:fs";
import { basename } from "node:path";
import type { AnyApp } from "../apps/define.ts";
import type { Book } from "../book/book.ts";
import { systemClock, type Timer } from "../core/clock.ts";
import { describeError } from "../core/error.ts";
import type { Definition } from "../open/use.ts";
import type { Reloaded } from "./apps-folder.ts";
import type { Loaded } from "./load-definitions.ts";
import { tellApp, tellProblem, type Tell } from "./app-report.ts";

/** An editor writes a file in several steps; they are waited for so long. */
const quietMs = 100;

/** Also folders, which have no ending. A book may lie beside the files, and is written all the time. */
const mayBeModule = /^[^.]+$|\.(?:[cm]?[jt]s|json)$/;

/** Returns the function that ends it. */
export function watchApps(book: Book, { folder, configure }: Loaded, tell: Tell): () => Promise<void> {
  if (folder === undefined) return async () => undefined;
  const watchers = new Map<string, FSWatcher>();
  let timer: Timer | undefined;
  let reloading: Promise<void> = Promise.resolve();

  const look = (): void => {
    timer?.cancel();
    timer = systemClock.after(quietMs, () => {
      reloading = reloading.then(async () => {
        for (const each of await folder.reload()) await apply(each);
        watchElsewhere();
      });
      reloading = reloading.catch((error: unknown) =>
        tellProblem(tell, { file: folder.path, message: describeError(error).message }),
      );
    });
  };

  async function apply({ file, definitions, before, problems }: Reloaded): Promise<void> {
    for (const each of problems) tellProblem(tell, each);
    if (definitions === undefined) return;
    const keys = new Set(appsOf(definitions).map(({ key }) => key));
    const gone = appsOf(before).filter(({ key }) => !keys.has(key));
    for (const { key } of gone) {
      await book.apps.stop(key).catch(() => undefined);
      tell(`${basename(file)}: app ${key} is no more, and was stopped`, { type: "app", key, status: "stopped" });
    }
    for (const each of appsOf(definitions)) tellApp(tell, await book.apps.reload(configure(each)));
    const others = definitions.filter((each) => each.kind !== "app" && each.kind !== "event");
    if (others.length === 0) return;
    tellProblem(tell, { file, message: `${file} also defines what is no app: that is loaded when the program starts` });
  }

  function begin(path: string, recursive: boolean): void {
    const watcher = watch(path, { recursive }, (_what, name) => {
      if (name === null || mayBeModule.test(basename(name))) look();
    });
    watcher.on("error", (error) => tellProblem(tell, { file: path, message: describeError(error).message }));
    watchers.set(path, watcher);
  }

  function watchElsewhere(): void {
    for (const path of folder?.elsewhere() ?? []) if (!watchers.has(path)) begin(path, false);
  }

  begin(folder.path, true);
  watchElsewhere();
  // What was edited while the program began.
  look();
  return async () => {
    for (const each of watchers.values()) each.close();
    timer?.cancel();
    await reloading;
  };
}

function appsOf(definitions: readonly Definition[]): AnyApp[] {
  return definitions.filter((each) => each.kind === "app");
}
