// Presence: somebody is home as long as a phone is. Phones lose their connection now and then, so one that is gone counts
// after ten minutes only.
import { app, event } from "daybook";
import { z } from "zod";
import { house } from "./house.ts";

export const PhoneSeen = event("phone.seen", { schema: z.object({ who: z.string(), here: z.boolean() }) });

export const presence = app("presence", {
  setup(home) {
    const here = new Set<string>();

    home
      .on(PhoneSeen, { name: "count", priority: 10 }, ({ who, here: isHere }) => {
        if (isHere) here.add(who);
        else here.delete(who);
      })
      .on(PhoneSeen, { name: "came", where: (seen) => seen.here }, function came(_seen, { book }) {
        if (!house.somebodyHome) book.events.emit("home.occupied");
        house.somebodyHome = true;
      })
      .on(PhoneSeen, { name: "left", debounce: "10m" }, function left(_seen, { book }) {
        if (here.size > 0 || !house.somebodyHome) return;
        house.somebodyHome = false;
        book.events.emit("home.empty");
      });
  },
});
