// The least that a read on another thread can cost: a message there, a prepared statement, a message back.
import { Worker } from "node:worker_threads";

export type BareReader = { get(id: number): Promise<unknown>; stop(): Promise<unknown> };

const source = `
  const { parentPort, workerData } = require("node:worker_threads");
  const { DatabaseSync } = require("node:sqlite");
  const statement = new DatabaseSync(workerData, { readOnly: true }).prepare("select id, body from note where id = ?");
  parentPort.on("message", (id) => parentPort.postMessage(statement.all(id)));
`;

export function startBareReader(path: string): BareReader {
  const worker = new Worker(source, { eval: true, workerData: path });
  let answer: (rows: unknown) => void;
  worker.on("message", (rows) => answer(rows));
  return {
    get: (id) =>
      new Promise((resolve) => {
        answer = resolve;
        worker.postMessage(id);
      }),
    stop: () => worker.terminate(),
  };
}
