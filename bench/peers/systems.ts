// What is measured, each in its fastest honest settings: as durable as Daybook, as many jobs at a time, and documented.
import { withDatabase, withFile } from "../harness/place.ts";
import { versionOf } from "./peer.ts";
import { redisVersion, withRedis } from "./redis.ts";

export type SystemName =
  | "Daybook, SQLite"
  | "Daybook, PostgreSQL"
  | "graphile-worker"
  | "pg-boss"
  | "BullMQ"
  | "OpenWorkflow";

export type System = {
  readonly name: SystemName;
  readonly module: string;
  /** Gives it an empty place to work in, and takes that away afterwards. */
  place<T>(postgres: string, work: (place: string) => Promise<T>): Promise<T>;
  /** Of the jobs that all others get: one that is slower by far would keep the rest waiting. */
  readonly share?: number;
  /** Why it cannot be measured here. */
  missing?(): string | undefined;
};

const onFile: System["place"] = (_postgres, work) => withFile(work);
const onPostgres: System["place"] = (postgres, work) => withDatabase(postgres, work);

export const systems: readonly System[] = [
  { name: "Daybook, SQLite", module: import.meta.resolve("../jobs/book.ts"), place: onFile },
  { name: "graphile-worker", module: import.meta.resolve("./graphile-worker.ts"), place: onPostgres },
  { name: "Daybook, PostgreSQL", module: import.meta.resolve("../jobs/book.ts"), place: onPostgres },
  { name: "pg-boss", module: import.meta.resolve("./pg-boss.ts"), place: onPostgres },
  {
    name: "BullMQ",
    module: import.meta.resolve("./bullmq.ts"),
    place: (_postgres, work) => withRedis(work),
    missing() {
      if (redisVersion() === undefined) return "redis-server is not installed (Debian: apt-get install redis-server)";
      return versionOf("ioredis") === undefined ? "ioredis is not among the packages of bench/peers" : undefined;
    },
  },
  { name: "OpenWorkflow", module: import.meta.resolve("./openworkflow.ts"), place: onFile, share: 0.1 },
];
