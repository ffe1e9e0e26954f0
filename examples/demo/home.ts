// A home: apps with an instance for each room, which hear at once what sensors say. `lights` goes by motion, `presence` by phones,
// `climate` by thermometers, one of which is flaky.
import { app, event, where, type Definition } from "daybook";
import { z } from "zod";
import { between, chance, pick } from "./chance.ts";
import { everyNowAndThen, takes, world } from "./world.ts";

const rooms = ["hall", "kitchen", "study"] as const;
const Reading = event("climate.reading", { schema: z.object({ room: z.string(), celsius: z.number() }) });
const PhoneSeen = event("phone.seen", { schema: z.object({ who: z.string(), here: z.boolean() }) });

export const lights = app("lights", {
  config: z.object({ room: z.string(), quiet: z.string().default("5m") }),
  instances: [{ room: "hall", quiet: "2m" }, { room: "kitchen" }, { room: "study", quiet: "15m" }],
  setup(home, { room, quiet }) {
    const lamp = (to: string, count: number): Promise<void> =>
      world.clock.sleep(between(30, 240, "lamp", room, to, count));
    let count = 0;

    home
      .on(
        `motion.${room}`,
        { name: "on", where: where.equals("moving", true), mode: "single" },
        async function turnOn() {
          await lamp("on", ++count);
        },
      )
      // Every event puts it off again, so it acts once there was quiet for so long.
      .on(`motion.${room}`, { name: "off", debounce: quiet }, async function turnOff() {
        await lamp("off", ++count);
      })
      .daily("23:00", { name: "night" }, async function night(_params, { log, signal }) {
        log(`${room}: good night`);
        await takes(between(30, 240, "night", room), signal);
      });
  },
});

export const presence = app("presence", {
  setup(home) {
    home
      .on(PhoneSeen, { name: "came", where: where.equals("here", true) }, ({ who }, { log }) => log(`${who} is home`))
      // Phones lose their connection now and then, so one that is gone counts after ten minutes only.
      .on(PhoneSeen, { name: "left", where: where.equals("here", false), debounce: "10m" }, ({ who }, { log }) =>
        log(`${who} has left`),
      );
  },
});

export const climate = app("climate", {
  config: z.object({ room: z.string(), warm: z.number() }),
  instances: [
    { room: "kitchen", warm: 23 },
    { room: "study", warm: 22 },
  ],
  setup(home, { room, warm }) {
    const here = where.equals("room", room);
    let heard = 0;

    home
      .on(
        Reading,
        { name: "too warm", where: [here, where.above("celsius", warm)], throttle: "15m" },
        async function open() {
          await world.clock.sleep(between(400, 1800, "window", room, ++heard));
        },
      )
      .on(Reading, { name: "thermostat", where: here }, async function adjust({ celsius }) {
        await world.clock.sleep(between(60, 500, "thermostat", room, ++heard));
        if (room === "study" && chance("zigbee", heard) < 0.08)
          throw new Error("zigbee: no route to thermostat 0x5a3c");
        if (celsius < 16) throw new RangeError(`a reading of ${celsius} °C is not believed`);
      })
      .every("30m", { name: "plan the heating", jitter: "40s" }, async function plan(_params, { signal }) {
        await takes(between(200, 700, "plan", room, ++heard), signal);
      });
  },
});

/** What the sensors say. Motion is only emitted, and heard here alone; readings are published, and stay. */
const sensors = app("sensors", {
  setup({ book, signal }) {
    void everyNowAndThen("motion", signal, (count) =>
      book.events.emit(`motion.${pick(rooms, "room", count)}`, { moving: chance("moves", count) < 0.7 }),
    );
    void everyNowAndThen("phone", signal, (count) =>
      book.events.publish(PhoneSeen, { who: pick(["ada", "grace"], "who", count), here: chance("here", count) < 0.5 }),
    );
    void everyNowAndThen("reading", signal, (count) => {
      const celsius = between(180, 236, "celsius", count) / 10;
      return book.events.publish(Reading, { room: pick(rooms, "where", count), celsius }, { key: `room-${count % 3}` });
    });
  },
});

export const home: readonly Definition[] = [Reading, PhoneSeen, lights, presence, climate, sensors];
