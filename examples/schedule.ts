// A schedule: a job that is due every second, three times, and the decision about each of its slots.
//
//   npx node --conditions=@daybook/source examples/schedule.ts     in this repo, on its sources
import { job, open, schedule } from "daybook";

const third = Promise.withResolvers<void>();
let count = 0;

const beat = job("beat", {
  // The handler is told which slot it runs for.
  run(_params: unknown, { job: { schedule: slot } }) {
    count++;
    console.log(`beat ${count} for a slot of "${slot?.name}", decided as ${slot?.reason}`);
    if (count === 3) third.resolve();
  },
});

// Written into the book by its name when a program that works opens it.
const everySecond = schedule("every-second", { every: "1s", job: beat, params: {}, overlap: "allow", maxFires: 3 });

await using book = await open(":memory:", { use: [beat, everySecond] });

const [next] = await book.schedules.preview("every-second", { count: 1 });
console.log(`the next slot is ${next === undefined ? "none" : new Date(next.at).toISOString().slice(17)}`);

await book.startWorker();
await third.promise;

const { items } = await book.schedules.decisions("every-second");
const { nextAt } = await book.schedules.get("every-second");
console.log(`${items.length} decisions, ${nextAt === null ? "and it is over" : "and it goes on"}`);

const { because } = await book.schedules.why("every-second", items[0]?.at ?? 0);
console.log(because[0]);
