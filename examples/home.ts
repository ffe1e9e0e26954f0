// A day in a simulated home, on a clock that the program moves: three apps, and what the book knows of them.
//
//   npx node --conditions=@daybook/source examples/home.ts                        in this repo, on its sources
//   npx daybook run --book home.db examples/home --watch                          the same apps, for real
import { manualClock, open } from "daybook";
import { blinds } from "./home/blinds.ts";
import { house } from "./home/house.ts";
import { lights } from "./home/lights.ts";
import { PhoneSeen, presence } from "./home/presence.ts";

const clock = manualClock({ at: Date.parse("2026-06-21T02:30:00Z") });
await using book = await open(":memory:", { use: [lights, blinds, presence], clock });
const worker = await book.startWorker();

/** Lets time pass, and what is due meanwhile happen. */
async function pass(minutes: number): Promise<void> {
  for (let minute = 0; minute < minutes; minute++) {
    await clock.advance(60_000);
    await worker.idle();
  }
  const time = new Date(clock.now()).toISOString().slice(11, 16);
  const lit = [...house.lights].join(", ") || "dark";
  console.log(`${time}  ${house.somebodyHome ? "somebody is home" : "nobody is home"}, ${lit}, blinds ${house.blinds}`);
}

book.events.emit(PhoneSeen, { who: "ada", here: true });
await pass(30);
await pass(60);
book.events.emit("motion.hall", { moving: true });
await pass(1);
await pass(5);
book.events.emit("motion.kitchen", { moving: true });
book.events.emit(PhoneSeen, { who: "ada", here: false });
await pass(9);
await pass(2);

for (const { key, instances, registrations } of await book.apps.list()) {
  console.log(
    `${key}: ${instances.length} instances, ${registrations.listeners} listeners, ${registrations.schedules} schedules`,
  );
}
const { registered } = await book.apps.get("lights");
console.log(`"${registered[0]?.name}" is ${registered[0]?.handler} at ${registered[0]?.location.split("/").at(-1)}`);
const { items } = await book.runs.list({ app: "blinds", name: "move" });
console.log(`the blinds have moved: ${items.length} run of "move", ${items[0]?.status}`);
