// Fires schedules by a clock of its own, which it moves when it is told by how much.
import { createInterface } from "node:readline";
import { systemClock } from "../../src/core/clock.ts";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { fireAll } from "../schedules/fire-all.ts";

const [url = "", at = "0"] = process.argv.slice(2);
let wallMs = Number(at);
// Timers are real: whoever waits for the other process to write waits with one.
const clock = { ...systemClock, now: () => wallMs };
const store = await openStore(url, migrations, { clock });
console.log("ready");
for await (const line of createInterface({ input: process.stdin })) {
  wallMs += Number(line);
  await fireAll(store);
  console.log("fired");
}
await store.close();
