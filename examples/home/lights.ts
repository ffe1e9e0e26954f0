// Lights: on when somebody moves, off when nobody has moved for a while. One instance for each room.
import { app, where } from "daybook";
import { z } from "zod";
import { house } from "./house.ts";

export const lights = app("lights", {
  config: z.object({ room: z.string(), quiet: z.string().default("5m") }),
  instances: [{ room: "hall" }, { room: "kitchen", quiet: "15m" }],
  setup(home, { room, quiet }) {
    const motion = `motion.${room}`;

    home
      .on(motion, { name: "on", where: where.equals("moving", true) }, function turnOn(_seen, { log }) {
        house.lights.add(room);
        log(`${room}: light on`);
      })
      // Every event puts it off again, so it acts once there was quiet for so long.
      .on(motion, { name: "off", debounce: quiet }, function turnOff(_seen, { log }) {
        house.lights.delete(room);
        log(`${room}: light off`);
      })
      .on("home.empty", { name: "nobody home" }, () => house.lights.delete(room));
  },
});
