// views: the tables of the designs that Daybook comes from, as read-only views under their names.
import { lines, type Part } from "../shown.ts";
import { admin } from "../verb.ts";

export const views = {
  create: admin({
    words: "views create",
    http: "POST /views",
    of: "book",
    about: "make all of the views, or bring them up to date",
    more: `All are made, or none: a name that a table or view of yours has is refused (conflict, exit code 5).
A second time it does nothing; after an update of daybook it brings them up to date. Programs do the
same with \`open(url, { views: true })\`.`,
    async run(book) {
      const { createViews, roomsOf, views: all } = await load();
      return { created: await createViews(roomsOf(book).store, all) };
    },
    show: ({ created }) => (created.length === 0 ? "The views are there and up to date." : listed("made", created)),
  }),

  drop: admin({
    words: "views drop",
    http: "DELETE /views",
    of: "book",
    about: "drop the views that are there",
    more: "Tables and views of your own stay, whatever their names.",
    async run(book) {
      const { dropViews, roomsOf, views: all } = await load();
      return { dropped: await dropViews(roomsOf(book).store, all) };
    },
    show: ({ dropped }) => (dropped.length === 0 ? "There are no such views." : listed("dropped", dropped)),
  }),
};

// Imported when they run: help needs none of the engine.
async function load() {
  const [rooms, list, made] = await Promise.all([
    import("../../open/rooms.ts"),
    import("../../open/migrations.ts"),
    import("../../storage/view.ts"),
  ]);
  return { roomsOf: rooms.roomsOf, views: list.views, createViews: made.createViews, dropViews: made.dropViews };
}

function listed(what: string, names: readonly string[]): Part {
  return lines([`${what}:`, ...names.map((name) => `  ${name}`)].join("\n"));
}
