// Listens, and writes down what it hears at once and for good: the line is in the file before anything else happens.
import { appendFileSync } from "node:fs";
import { systemClock } from "../../src/core/clock.ts";
import { listener, open } from "../../src/index.ts";

const [url = "", ledger = ""] = process.argv.slice(2);
const use = ["one", "two", "three"].map((name) =>
  listener(name, {
    on: "talk.*",
    async run(payload) {
      const { n } = payload as { n: number };
      appendFileSync(ledger, `${name} ${n} ${process.pid}\n`);
      await systemClock.sleep(n % 4);
    },
  }),
);
const poison = listener("poison", {
  on: "poison.take",
  losses: 2,
  run() {
    appendFileSync(ledger, `poison 0 ${process.pid}\n`);
    process.kill(process.pid, "SIGKILL");
    return new Promise(() => undefined);
  },
});
const book = await open(url, { use: [...use, poison] });
await book.startWorker({ concurrency: 4 });
console.log("working");
