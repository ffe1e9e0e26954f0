// pg-boss with batches: a worker fetches, runs and completes as many jobs at once as it has places, is woken by NOTIFY, and
// goes on without a pause while its batches are full.
import type { OpenQueue, Params } from "../harness/queue.ts";
import { peer, versionOf } from "./peer.ts";

type PgBoss = {
  on(event: "error", listener: (error: Error) => void): void;
  start(): Promise<unknown>;
  createQueue(name: string, options: object): Promise<void>;
  send(name: string, data: Params): Promise<string | null>;
  work(name: string, options: object, handler: (jobs: readonly object[]) => Promise<void>): Promise<string>;
  offWork(name: string, options: object): Promise<void>;
  getDb(): { executeSql(text: string): Promise<unknown> };
  stop(options: object): Promise<void>;
};

const connections = 20;
const queue = "noop";

export const openQueue: OpenQueue = async (place) => {
  const { PgBoss } = peer<{ PgBoss: new (options: object) => PgBoss }>("pg-boss");
  const boss = new PgBoss({ connectionString: place, max: connections, useListenNotify: true, schedule: false });
  boss.on("error", (error) => console.error(error));
  await boss.start();
  await boss.createQueue(queue, { notify: true });
  return {
    about: {
      version: `pg-boss ${versionOf("pg-boss")}`,
      durability: "power loss (fsync on)",
      settings: `batchSize as many as places, burstWhenBatchFull, LISTEN/NOTIFY, ${connections} connections; keeps done jobs`,
    },
    enqueue: (params) => boss.send(queue, params),
    async work(places, handler) {
      const options = { batchSize: places, burstWhenBatchFull: true };
      await boss.work(queue, options, async (jobs) => {
        for (const _job of jobs) handler();
      });
      // A worker completes its batch before it asks for another, and ends after that.
      let stopped: Promise<void> | undefined;
      const stop = (): Promise<void> => (stopped ??= boss.offWork(queue, { wait: true }));
      return { settled: stop, stop };
    },
    analyse: async () => void (await boss.getDb().executeSql("analyze")),
    close: () => boss.stop({ graceful: true }),
  };
};
