// What happens once a transaction is on disk. It was kept, whatever happens now, so a failure here may neither reach
// the unit nor its neighbours: it is a warning.
import { describeError } from "../core/error.ts";

export function runAfterCommit(callbacks: readonly (() => void)[]): void {
  for (const run of callbacks) shielded(run);
}

/** Tells every listener, also those after one that fails. */
export function tellAll(listeners: Iterable<(channel: string | null) => void>, channel: string | null): void {
  for (const hear of listeners) shielded(() => hear(channel));
}

function shielded(run: () => void): void {
  try {
    run();
  } catch (error) {
    const { message, trace } = describeError(error);
    process.emitWarning(`something failed after a commit (the commit itself is kept): ${message}`, {
      type: "DaybookWarning",
      code: "DAYBOOK_AFTER_COMMIT",
      ...(trace === null ? {} : { detail: trace }),
    });
  }
}
