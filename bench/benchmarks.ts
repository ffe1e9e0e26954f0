// Every benchmark by its name on the command line. To add one, write bench/<name>.ts and a line here.
import type { Benchmark } from "./harness/benchmark.ts";

/** Each is loaded in a process of its own, so that what one needs does not count as another's memory. */
export const benchmarks: Readonly<Record<string, () => Promise<Benchmark>>> = {
  storage: async () => (await import("./storage.ts")).storage,
  jobs: async () => (await import("./jobs.ts")).jobs,
  recovery: async () => (await import("./recovery.ts")).recovery,
  finish: async () => (await import("./finish.ts")).finish,
  growth: async () => (await import("./growth.ts")).growth,
  around: async () => (await import("./around.ts")).around,
  reads: async () => (await import("./reads.ts")).reads,
  schedules: async () => (await import("./schedules.ts")).schedules,
  live: async () => (await import("./live.ts")).live,
  events: async () => (await import("./events.ts")).events,
  calls: async () => (await import("./calls.ts")).calls,
  relations: async () => (await import("./relations.ts")).relations,
  records: async () => (await import("./records.ts")).records,
  telemetry: async () => (await import("./telemetry.ts")).telemetry,
  neighbour: async () => (await import("./neighbour.ts")).neighbour,
  server: async () => (await import("./server.ts")).server,
  open: async () => (await import("./open.ts")).open,
};
