// Water in the morning, unless it has rained.
import { app } from "daybook";

export const plants = app("plants", {
  setup(garden) {
    let rained = false;
    garden
      .on("weather.rain", { name: "rain" }, () => {
        rained = true;
      })
      .cron("0 6 * * *", { name: "water", zone: "Europe/London" }, () => {
        console.log(rained ? "the rain has done it" : "the plants are watered");
        rained = false;
      });
  },
});
