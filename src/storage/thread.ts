// Starts one of the package's thread files, from source in the repository and from compiled code when published.
import { extname } from "node:path";
import { Worker } from "node:worker_threads";

/** `name` is the file without its ending, beside the module whose `import.meta.url` is given. */
export function startThread(name: string, besideUrl: string, data: unknown): Worker {
  const worker = new Worker(new URL(`${name}${extname(besideUrl)}`, besideUrl), { workerData: data });
  worker.unref(); // a thread that only serves must not keep a finished program alive
  return worker;
}
