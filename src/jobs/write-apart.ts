// A turn writes many things at once, so one of them that cannot be written holds up the others. When a turn keeps failing
// for a reason that does not pass, what runs said about themselves is given up first, and then every ending is written
// by itself: telemetry never stops work, and one bad ending never stops its neighbours.
import type { ErrorCode } from "../core/error.ts";
import type { Engine } from "./engine.ts";
import { runNotesDropped } from "./hooks.ts";
import type { News } from "./news.ts";
import type { Ending } from "./outcome.ts";
import { settle } from "./settle.ts";

/** Failures that go away by themselves; nothing is given up for them. */
export const passing: ReadonlySet<ErrorCode> = new Set<ErrorCode>([
  ...(["busy", "unavailable", "unknown_outcome", "full", "conflict", "timeout", "closed"] as const),
]);

const dropNotesAfter = 2;
const oneByOneAfter = 3;

/** What is left to write after the n-th failure in a row. */
export async function apart(engine: Engine, news: News, failures: number): Promise<News> {
  const { endings, unclaims } = news;
  if (failures < dropNotesAfter) return news;
  const dropped = news.logs.length + news.progress.length;
  if (dropped > 0) runNotesDropped.state({ count: dropped });
  const rest: News = { endings, unclaims, begun: news.begun, logs: [], progress: [] };
  if (failures < oneByOneAfter || endings.length < 2) return rest;
  const left: Ending[] = [];
  for (const ending of endings) {
    const written = engine.store.write((tx) => settle(tx, engine.hooks, [ending]), { beat: false });
    if (
      !(await written.then(
        () => true,
        () => false,
      ))
    )
      left.push(ending);
  }
  return { ...rest, endings: left };
}
