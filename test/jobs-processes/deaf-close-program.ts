// A program whose handler never ends and heeds no signal, and that closes its book and has nothing else to do.
import { job, open } from "../../src/index.ts";

const began = Promise.withResolvers<void>();
const deaf = job("deaf", {
  run() {
    began.resolve();
    return new Promise<void>(() => {});
  },
});

const book = await open(process.argv[2] ?? "", { use: [deaf] });
await book.jobs.enqueue(deaf, {});
await book.startWorker({ grace: 1 });
await began.promise;
await book.close();
console.log("closed");
