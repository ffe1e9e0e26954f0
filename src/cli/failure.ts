// Every failure of the command line comes here, is said once, in the form that was asked for, and becomes an exit code.
import { styleText } from "node:util";
import { CommanderError } from "commander";
import { plainJson, plainLine, plainLines } from "../verbs/plain.ts";
import { asDaybookError, describeError, errorCodes, invalid, type DaybookError } from "../core/error.ts";

/** Prints the failure on standard error and returns the exit code. Help and version arrive here too: they end a run. */
export function reportFailure(thrown: unknown, { json }: { json: boolean }): number {
  if (thrown instanceof CommanderError && thrown.exitCode === 0) return 0;
  const error = thrown instanceof CommanderError ? wrongUsage(thrown) : asDaybookError(thrown);
  if (json) {
    const { code, message, details } = error;
    process.stderr.write(`${plainJson({ error: { code, message, details } })}\n`);
  } else if (!(thrown instanceof CommanderError && thrown.code === "commander.help")) {
    process.stderr.write(`${inWords(error)}\n`);
  }
  return errorCodes[error.code].exit;
}

// Commander's own words already name the nearest command or option; only their form is made ours.
function wrongUsage(error: CommanderError & { readonly help?: string }): DaybookError {
  const { help = "daybook --help" } = error;
  if (error.code === "commander.help") return invalid(`no command given: "${help}" lists them`);
  const message = error.message
    .replace(/^error: /, "")
    .replace(/\.$/, "")
    .replaceAll(/\s*\n\s*/g, " ");
  return invalid(/\(Did you mean/.test(message) ? message : `${message}: see "${help}"`);
}

function inWords(error: DaybookError): string {
  const head = styleText("red", `error (${error.code})`, { stream: process.stderr });
  // What failed on a server left its trace in the log there.
  if (error.code !== "internal" || "server" in error.details) return `${head}: ${plainLine(error.message)}`;
  // Nobody can act on a defect but its maker, who needs the trace.
  const { trace } = describeError(error.cause ?? error);
  return `${head}: ${plainLine(error.message)}\n${plainLines(trace ?? "")}\nThis is a defect in daybook: please report it with the lines above.`;
}
