// BullMQ on a Redis that syncs its log before it answers. BullMQ 6 brings no Redis client of its own: without ioredis beside it,
// it is left out.
import type { OpenQueue, Params } from "../harness/queue.ts";
import { peer, versionOf } from "./peer.ts";

type Queue = { add(name: string, data: Params): Promise<unknown>; close(): Promise<void> };
type Worker = {
  on(event: "completed" | "error", listener: () => void): void;
  waitUntilReady(): Promise<unknown>;
  close(): Promise<void>;
};
type BullMQ = {
  Queue: new (name: string, options: object) => Queue;
  Worker: new (name: string, handler: () => Promise<void>, options: object) => Worker;
};
type Redis = { quit(): Promise<unknown> };

const name = "noop";

export const openQueue: OpenQueue = async (place) => {
  const { Queue, Worker } = peer<BullMQ>("bullmq");
  const { Redis } = peer<{ Redis: new (url: string, options: object) => Redis }>("ioredis");
  const connect = (): Redis => new Redis(place, { maxRetriesPerRequest: null });
  const sending = connect();
  const queue = new Queue(name, { connection: sending });
  return {
    about: {
      version: `bullmq ${versionOf("bullmq")}, ioredis ${versionOf("ioredis")}`,
      durability: "power loss (appendfsync always)",
      settings: "concurrency as measured, everything else by default; keeps done jobs",
    },
    enqueue: (params) => queue.add(name, params),
    async work(places, handler) {
      let open = 0;
      let wake: () => void = () => {};
      const connection = connect();
      const begin = async (): Promise<void> => {
        open++;
        handler();
      };
      const worker = new Worker(name, begin, { connection, concurrency: places });
      worker.on("completed", () => {
        if (--open === 0) wake();
      });
      worker.on("error", () => {});
      await worker.waitUntilReady();
      return {
        settled: () => (open === 0 ? Promise.resolve() : new Promise((resolve) => (wake = resolve))),
        async stop() {
          await worker.close();
          await connection.quit();
        },
      };
    },
    async close() {
      await queue.close();
      await sending.quit();
    },
  };
};
