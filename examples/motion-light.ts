// A light in the hall, simulated: it goes on when somebody comes, and off once nothing has moved for five minutes. The
// sensor's readings are emitted, since nobody needs them tomorrow; that the light changed is published, and kept.
//
//   npx node --conditions=@daybook/source examples/motion-light.ts     in this repo, on its sources
import { event, listener, manualClock, open, where } from "daybook";

const clock = manualClock({ at: Date.UTC(2026, 0, 1, 18, 0) });
const lamp = { on: false };
const LightChanged = event<{ on: boolean }>("light.hall.changed");

const lightOn = listener("light-on", {
  on: "motion.hall",
  live: true,
  where: [
    where.equals("moving", true),
    function isDark() {
      return !lamp.on;
    },
  ],
  priority: 10,
  async run(_payload, { book, log }) {
    lamp.on = true;
    log("somebody is here");
    await book.events.publish(LightChanged, { on: true });
  },
});

const lightOff = listener("light-off", {
  on: "motion.hall",
  live: true,
  where: where.equals("moving", false),
  for: "5m",
  async run(_payload, { book }) {
    lamp.on = false;
    await book.events.publish(LightChanged, { on: false });
  },
});

const diary = listener("diary", {
  on: LightChanged,
  live: true,
  mode: "queued",
  run: ({ on }, { event: said }) =>
    console.log(`${new Date(said.at).toISOString().slice(11, 16)} the light is ${on ? "on" : "off"}`),
});

await using book = await open(":memory:", { use: [lightOn, lightOff, diary], clock });

// Somebody comes, stands still for two minutes, moves once more and leaves.
for (const [moving, minutes] of [
  [true, 1],
  [false, 2],
  [true, 1],
  [false, 10],
] as const) {
  book.events.emit("motion.hall", { moving });
  await clock.advance(minutes * 60_000);
}

for (const { name, hears, heard, runs } of book.events.live())
  console.log(`${name}: ${hears}; heard ${heard}, ran ${runs}`);
const { items } = await book.runs.list();
console.log(
  `${items.length} runs are in the book: ${items
    .map(({ name }) => name)
    .toSorted()
    .join(", ")}`,
);
