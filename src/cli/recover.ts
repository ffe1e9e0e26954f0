// daybook recover: what workers do by themselves, when none works.
import type { Command } from "commander";
import type { Recovery } from "../jobs/settle/rescue.ts";
import type { Answer } from "./answer.ts";
import { looking, withBook } from "./with-book.ts";

const example = `
Workers do this by themselves, so it is for a book on which none works. It says what it would end, and
ends it with --apply: the runs and reservations of sessions that have ended, runs past their timeout,
and programs on this host that outlived their worker. With --apply it is a session itself, and also
finds those whose process is gone and that nobody has declared dead. What was lost runs again when
a worker comes. It is about all tenants, and never touches the living.

Example:
  $ daybook recover --book shop.db
  $ daybook recover --book shop.db --apply`;

export function recover(program: Command): void {
  program
    .command("recover")
    .description("say what dead processes left behind, and with --apply end it")
    .option("--apply", "do it, and do not only say it")
    .addHelpText("after", example)
    .action(({ apply }: { apply?: true }, command: Command) => {
      if (apply === true) return applyTo(command);
      return withBook(command, looking, async (book) => toAnswer(await book.jobs.recover({ dryRun: true })));
    });
}

async function applyTo(command: Command): Promise<void> {
  const { sessionRecovered } = await import("../jobs/kind.ts");
  let lost = 0;
  const forget = sessionRecovered.subscribe(({ jobs }) => void (lost += jobs));
  try {
    await withBook(command, { attach: true, migrate: false }, async (book) => {
      // Whoever is found dead here is recovered in the transaction that says so.
      await book.sessions.look();
      const before = lost;
      const done = await book.jobs.recover();
      return toAnswer({ ...done, lost, recovered: before + done.recovered });
    });
  } finally {
    forget();
  }
}

function toAnswer(found: Recovery): Answer {
  const { dryRun, lost, reservations, recovered } = found;
  const what = `${lost} runs and ${reservations} reservations of sessions that have ended`;
  const text = dryRun ? `${what}; end them with --apply` : `${what}: ${recovered} ended or released`;
  return { json: found, text: () => text };
}
