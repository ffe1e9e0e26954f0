// daybook calls cancel, resend, reschedule, delete.
import type { Command } from "commander";
import { isoTime } from "../../core/time.ts";
import { changing, withBook } from "../with-book.ts";

export function steerCalls(group: Command): void {
  group
    .command("cancel")
    .description("cancel a call: one that waits is never sent, one that is being sent is given up")
    .argument("<id>", "the id of the call")
    .addHelpText("after", exampleOf("cancel"))
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        const done = await book.calls.cancel(id);
        return {
          json: done,
          text: () => (done.status === "cancelled" ? `${id} is cancelled` : `${id} is being sent and is given up`),
        };
      }),
    );
  group
    .command("resend")
    .description("send the request of a call that has ended once more, as a new call")
    .argument("<id>", "the id of the call")
    .option("--in <duration>", 'not before this long from now, such as "5m"')
    .option("--new-key", "with an Idempotency-Key of its own")
    .addHelpText("after", exampleOf("resend"))
    .action((id: string, options: { in?: string; newKey?: boolean }, command: Command) =>
      withBook(command, changing, async (book) => {
        const { dueAt, ...made } = await book.calls.resend(id, options);
        return { json: { ...made, dueAt: isoTime(dueAt) }, text: () => `${made.id} sends it again` };
      }),
    );
  group
    .command("reschedule")
    .description("give a call that has not started another time")
    .argument("<id>", "the id of the call")
    .option("--at <time>", "at this time, in ISO 8601")
    .option("--in <duration>", 'this long from now, such as "5m"')
    .addHelpText("after", `${exampleOf("reschedule")} --in 2h`)
    .action((id: string, options: { at?: string; in?: string }, command: Command) =>
      withBook(command, changing, async (book) => {
        const { dueAt } = await book.calls.reschedule(id, options);
        return { json: { id, dueAt: isoTime(dueAt) }, text: () => `${id} is due at ${isoTime(dueAt)}` };
      }),
    );
  group
    .command("delete")
    .description("remove a call that has ended, with its tags and attempts")
    .argument("<id>", "the id of the call")
    .addHelpText("after", exampleOf("delete"))
    .action((id: string, _options: unknown, command: Command) =>
      withBook(command, changing, async (book) => {
        await book.calls.delete(id);
        return { json: { id, deleted: true }, text: () => `${id} is gone` };
      }),
    );
}

function exampleOf(verb: string): string {
  return `\nExample:\n  $ daybook calls ${verb} --book shop.db 019a3c5e-7b1f-7000-8000-3f2a9d0c1b2e`;
}
