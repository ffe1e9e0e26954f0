// The least that a read on another thread can cost: a message there, a prepared statement, a message back.
import { Worker } from "node:worker_threads";

export type BareReader = {
  get(id: number): Promise<unknown>;
  /** All rows of any statement without parameters. */
  all(text: string): Promise<unknown>;
  stop(): Promise<unknown>;
};

const source = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { DatabaseSync } = require("node:sqlite");
  const db = new DatabaseSync(workerData, { readOnly: true });
  const statements = new Map();
  const prepare = (text) => statements.get(text) ?? statements.set(text, db.prepare(text)).get(text);
  parentPort.on("message", ({ text, values }) => parentPort.postMessage(prepare(text).all(...values)));
`;

export function startBareReader(path: string): BareReader {
  const worker = new Worker(source, { eval: true, workerData: path });
  let answer: (rows: unknown) => void;
  worker.on("message", (rows) => answer(rows));
  const ask = (text: string, values: readonly unknown[] = []): Promise<unknown> =>
    new Promise((resolve) => {
      answer = resolve;
      worker.postMessage({ text, values });
    });
  return {
    get: (id) => ask("select id, body from note where id = ?", [id]),
    all: ask,
    stop: () => worker.terminate(),
  };
}
