// Light where somebody moves, and dark again once it was quiet for a while. One instance for each room.
import { app, where } from "daybook";

export const lights = app<{ room: string; quiet: string }>("lights", {
  instances: [
    { room: "hall", quiet: "5m" },
    { room: "kitchen", quiet: "15m" },
  ],
  setup(home, { room, quiet }) {
    home
      .on(`motion.${room}`, { name: "on", where: where.equals("moving", true) }, () => console.log(`${room}: light on`))
      .on(`motion.${room}`, { name: "off", debounce: quiet }, () => console.log(`${room}: light off`))
      .daily("23:00", { name: "night", zone: "Europe/London" }, () => console.log(`${room}: good night`));
  },
});
