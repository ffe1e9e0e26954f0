// OpenWorkflow on SQLite: each job is a workflow without steps. Its workers poll.
import type { OpenQueue, Params } from "../harness/queue.ts";
import { peer, versionOf } from "./peer.ts";

type Backend = { completeWorkflowRun(run: unknown): Promise<unknown>; stop(): Promise<void> };
type Client = {
  defineWorkflow(spec: { name: string }, run: () => Promise<void>): { run(input: Params): Promise<unknown> };
  newWorker(options: { concurrency: number }): { start(): Promise<void>; stop(): Promise<void> };
};

export const openQueue: OpenQueue = async (place) => {
  const { OpenWorkflow } = peer<{ OpenWorkflow: new (options: { backend: Backend }) => Client }>("openworkflow");
  const { BackendSqlite } = peer<{ BackendSqlite: { connect(path: string): Backend } }>("openworkflow/sqlite");
  const backend = BackendSqlite.connect(place);
  const open = countOpen(backend);
  let begin: () => void = () => {};
  const client = new OpenWorkflow({ backend });
  const noop = client.defineWorkflow({ name: "noop" }, async () => begin());
  return {
    about: {
      version: `openworkflow ${versionOf("openworkflow")}`,
      durability: "power loss (WAL, synchronous as SQLite's default, full)",
      settings: "concurrency as measured; a tenth of the jobs; keeps done workflows",
    },
    enqueue: (params) => noop.run(params),
    async work(places, handler) {
      begin = () => {
        open.begun();
        handler();
      };
      const worker = client.newWorker({ concurrency: places });
      await worker.start();
      return { settled: open.none, stop: () => worker.stop() };
    },
    close: () => backend.stop(),
  };
};

/** Its own way to wait for an end is to ask again and again, which would cost more than it measures. */
function countOpen(backend: Backend): { begun(): void; none(): Promise<void> } {
  const complete = backend.completeWorkflowRun.bind(backend);
  let open = 0;
  let wake: () => void = () => {};
  backend.completeWorkflowRun = async (run) => {
    const ended = await complete(run);
    if (--open === 0) wake();
    return ended;
  };
  return {
    begun: () => void open++,
    none: () => (open === 0 ? Promise.resolve() : new Promise((resolve) => (wake = resolve))),
  };
}
