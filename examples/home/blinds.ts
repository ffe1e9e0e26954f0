// Blinds: open when the sun rises and closed when it sets, which is another time each day. Every night the two moves of the
// day are planned as jobs, which wait in the book: a program that starts again at noon has not forgotten the evening.
import { app } from "daybook";
import { house, sunOn } from "./house.ts";

export const blinds = app("blinds", {
  setup(home) {
    const move = home.job({ name: "move" }, ({ to }: { to: "open" | "closed" }, { log }) => {
      house.blinds = to;
      log(`blinds ${to}`);
    });

    home.cron("0 3 * * *", { name: "plan the day", missed: "latest" }, async function plan(_params, { book, job }) {
      const day = job.schedule?.nominalAt ?? job.createdAt;
      const { rise, set } = sunOn(day);
      // A key makes each move one, also when the day is planned twice.
      await book.jobs.enqueue(move, { to: "open" }, { at: rise, key: `open ${rise}` });
      await book.jobs.enqueue(move, { to: "closed" }, { at: set, key: `closed ${set}` });
    });
  },
});
