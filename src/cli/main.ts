#!/usr/bin/env node
// The way in from a shell: reads the arguments, runs one command, and turns whatever went wrong into an exit code.
import { reportFailure } from "./failure.ts";
import { runProgram } from "./program.ts";

// Looked for in the raw arguments, because a failure to read them must be reported in the form that was asked for.
const json = process.argv.includes("--json");

// `daybook sessions | head` closes the pipe early, which is the reader's right and no failure: the command goes on to
// its end, so that the book is closed as ever.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code !== "EPIPE") throw error;
});

try {
  await runProgram(process.argv.slice(2), { json });
} catch (thrown) {
  // Not process.exit(): what was printed may still be on its way through a pipe.
  process.exitCode = reportFailure(thrown, { json });
}
