// A durable queue as the benchmarks see it: Daybook of this or another checkout, or a peer. What is not in here cannot be
// compared; what is in here must mean the same for all of them.

export type Params = { readonly n: number; readonly [field: string]: unknown };

export type Queue = {
  /** What a reader has to know before the figures mean anything. */
  readonly about: About;
  /** Resolves when the job has the durability that `about` names. */
  enqueue(params: Params): Promise<unknown>;
  /** Starts a worker that calls `handler` at the start of each job, at most `places` at a time. */
  work(places: number, handler: () => void): Promise<QueueWorker>;
  /** Where a server would gather statistics about its tables by itself, sooner or later. */
  analyse?(): Promise<void>;
  close(): Promise<void>;
};

export type QueueWorker = {
  /** Resolves once every job that has begun is on disk as done. It may stop the worker for that. */
  settled(): Promise<void>;
  stop(): Promise<void>;
};

export type About = {
  readonly version: string;
  readonly durability: string;
  readonly settings: string;
};

/** What the module of a queue exports. */
export type OpenQueue = (place: string, checkout?: string) => Promise<Queue>;

/** About a hundred bytes, as the params of a real job are. */
export function sampleParams(n: number): Params {
  return { to: "someone@example.com", subject: "hello", template: "welcome", n, note: "x".repeat(30) };
}
