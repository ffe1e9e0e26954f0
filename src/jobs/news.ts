// What a worker has to write down: endings, claims to give back, and what runs say about themselves. It is gathered here
// until a turn has written it.
import type { RunLogRow } from "../telemetry/log.ts";
import type { Claimed } from "./claim.ts";
import type { RunState } from "./context.ts";
import type { Ending } from "./outcome.ts";

export type Progress = {
  readonly seq: number;
  readonly run_id: string;
  readonly progress: number;
  readonly note: string | null;
};

export type News = {
  readonly endings: readonly Ending[];
  readonly logs: readonly RunLogRow[];
  readonly progress: readonly Progress[];
  readonly unclaims: readonly Claimed[];
  /** Runs with a timeout whose handler has begun since the last turn: their time is counted from now. */
  readonly begun: readonly Claimed[];
};

export type NewsDesk = {
  readonly hasNews: boolean;
  ended(ending: Ending): void;
  unclaim(jobs: readonly Claimed[]): void;
  /** The run has written a line or made progress. */
  changed(state: RunState): void;
  /** A run with a timeout begins. It is told with the next turn; `tellBegun` asks for one. */
  begins(state: RunState): void;
  tellBegun(): void;
  take(): News;
  /** Takes back what could not be written. */
  giveBack(news: News): void;
};

export function createNewsDesk(isRunning: (runId: string) => boolean): NewsDesk {
  const changed = new Set<RunState>();
  const begun = new Map<string, Claimed>();
  let endings: Ending[] = [];
  let unclaims: Claimed[] = [];
  let logs: RunLogRow[] = [];
  let progress: Progress[] = [];
  let askForTurn = false;

  function collect(): void {
    for (const state of changed) {
      const { seq, run_id, tenant_id } = state.job;
      for (const { level, message, fields, at } of state.logs.splice(0)) {
        logs.push({ tenant_id, run_id, logged_at: at, level, message, fields });
      }
      if (state.progress === undefined) continue;
      progress.push({ seq, run_id, progress: state.progress.done, note: state.progress.note });
      state.progress = undefined;
    }
    changed.clear();
  }

  return {
    get hasNews() {
      const written = changed.size > 0 || logs.length > 0 || progress.length > 0;
      return endings.length > 0 || unclaims.length > 0 || written || (askForTurn && begun.size > 0);
    },
    ended: (ending) => void endings.push(ending),
    unclaim: (jobs) => void unclaims.push(...jobs),
    changed: (state) => void changed.add(state),
    begins: ({ job: { seq, run_id } }) => void begun.set(run_id, { seq, run_id }),
    tellBegun: () => void (askForTurn = true),
    take() {
      if (changed.size > 0) collect();
      const still = begun.size === 0 ? [] : [...begun.values()].filter(({ run_id }) => isRunning(run_id));
      const news = { endings, unclaims, logs, progress: latest(progress), begun: still };
      [endings, unclaims, logs, progress] = [[], [], [], []];
      begun.clear();
      askForTurn = false;
      return news;
    },
    giveBack(news) {
      endings = [...news.endings, ...endings];
      unclaims = [...news.unclaims, ...unclaims];
      logs = [...news.logs, ...logs];
      progress = [...news.progress, ...progress];
      for (const each of news.begun) begun.set(each.run_id, each);
    },
  };
}

// One statement updates a row once, so of several words about one run the last one counts.
function latest(progress: readonly Progress[]): readonly Progress[] {
  if (progress.length < 2) return progress;
  return [...new Map(progress.map((each) => [each.run_id, each])).values()];
}
