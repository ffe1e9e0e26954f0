// daybook apps: what runs here by name, and what each of them registered.
import type { Command } from "commander";
import { appJson, appTable, detailsJson, detailsWords } from "./app-words.ts";
import { looking, withBook } from "./with-book.ts";

const groupExample = `
An app is a bundle of listeners and schedules with one or more configured instances (docs/apps.md).

Example:
  $ daybook apps list --book home.db
  $ daybook apps show --book home.db lights`;

export function apps(program: Command): void {
  const group = program
    .command("apps")
    .description("list apps, and show what they registered and where in the source")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  const list = group.command("list").description("list apps by key, with their instances");
  list.addHelpText("after", "\nExample:\n  $ daybook apps list --book home.db").action(() =>
    withBook(list, looking, async (book) => {
      const items = await book.apps.list();
      return {
        json: { items: items.map(appJson) },
        text: () => (items.length === 0 ? "No app has been set up." : appTable(items)),
      };
    }),
  );
  const show = group
    .command("show")
    .description("show one app: its instances, and what they registered")
    .argument("<key>", "the key of the app");
  show.addHelpText("after", "\nExample:\n  $ daybook apps show --book home.db lights").action((key: string) =>
    withBook(show, looking, async (book) => {
      const found = await book.apps.get(key);
      return { json: detailsJson(found), text: () => detailsWords(found) };
    }),
  );
}
