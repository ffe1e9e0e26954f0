// graphile-worker with its local queue and batched completions, which its documentation names for throughput. It deletes a
// job that is done and keeps no history.
import type { OpenQueue } from "../harness/queue.ts";
import { peer, versionOf } from "./peer.ts";

type Pool = {
  on(event: "error" | "connect", listener: () => void): void;
  query(text: string): Promise<{ rows: { left: string }[] }>;
  end(): Promise<void>;
};
type Runner = { stop(): Promise<void> };
type GraphileWorker = {
  Logger: new (factory: () => () => void) => object;
  makeWorkerUtils(options: object): Promise<{
    migrate(): Promise<void>;
    addJob(name: string, payload: unknown): Promise<unknown>;
    release(): Promise<void>;
  }>;
  run(options: object): Promise<Runner>;
};

const connections = 20;
const localQueueSize = 500;
const completeJobBatchDelay = 0;

export const openQueue: OpenQueue = async (place) => {
  const { Logger, makeWorkerUtils, run } = peer<GraphileWorker>("graphile-worker");
  const { Pool } = peer<{ Pool: new (options: object) => Pool }>("pg");
  // Ours, so that stopping a worker does not also close connections.
  const pgPool = new Pool({ connectionString: place, max: connections });
  for (const event of ["error", "connect"] as const) pgPool.on(event, () => {});
  const logger = new Logger(() => () => {});
  const utils = await makeWorkerUtils({ pgPool, logger });
  await utils.migrate();
  return {
    about: {
      version: `graphile-worker ${versionOf("graphile-worker")}`,
      durability: "power loss (fsync on)",
      settings: `localQueue.size ${localQueueSize}, completeJobBatchDelay ${completeJobBatchDelay}, ${connections} connections; keeps no history`,
    },
    enqueue: (params) => utils.addJob("noop", params),
    async work(places, handler) {
      const runner = await run({
        pgPool,
        logger,
        noHandleSignals: true,
        preset: {
          worker: {
            concurrentJobs: places,
            localQueue: { size: localQueueSize },
            completeJobBatchDelay,
            failJobBatchDelay: 0,
          },
        },
        taskList: { noop: async () => handler() },
      });
      let stopped: Promise<void> | undefined;
      // A batch of completions is told to nobody; stop() alone waits for it.
      const stop = (): Promise<void> => (stopped ??= runner.stop().then(() => refuseLeft(pgPool)));
      return { settled: stop, stop };
    },
    analyse: async () => void (await pgPool.query("analyze")),
    async close() {
      await utils.release();
      await pgPool.end();
    },
  };
};

async function refuseLeft(pool: Pool): Promise<void> {
  const { rows } = await pool.query("select count(*) as left from graphile_worker._private_jobs");
  if (rows[0]?.left !== "0") throw new Error(`graphile-worker has ${rows[0]?.left} jobs left`);
}
