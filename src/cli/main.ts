#!/usr/bin/env node
// The way in from a shell: reads the arguments, runs one command, and turns whatever went wrong into an exit code. An old Node cannot
// even parse the other files, so they are imported once it is known to be new enough, and nothing above is newer than it.

const nodeMin = "24.15";

// Looked for in the raw arguments, because a failure to read them must be reported in the form that was asked for.
const json = process.argv.includes("--json");

if (isNewEnough(process.versions.node)) await run();
else refuse(`daybook needs Node ${nodeMin} or later, and this is Node ${process.versions.node}`);

async function run(): Promise<void> {
  // `daybook sessions | head` closes the pipe early, which is the reader's right and no failure: the command goes on to
  // its end, so that the book is closed as ever.
  process.stdout.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code !== "EPIPE") throw error;
  });
  const [{ reportFailure }, { runProgram }] = await Promise.all([import("./failure.ts"), import("./program.ts")]);
  try {
    await runProgram(process.argv.slice(2), { json });
  } catch (thrown) {
    // Not process.exit(): what was printed may still be on its way through a pipe.
    process.exitCode = reportFailure(thrown, { json });
  }
}

function isNewEnough(version: string): boolean {
  const [major = 0, minor = 0] = version.split(".").map(Number);
  const [majorMin = 0, minorMin = 0] = nodeMin.split(".").map(Number);
  return major > majorMin || (major === majorMin && minor >= minorMin);
}

/** The code is that of `incompatible`, whose table cannot be read here. */
function refuse(message: string): void {
  const error = { code: "incompatible", message, details: {} };
  process.stderr.write(json ? `${JSON.stringify({ error })}\n` : `error (incompatible): ${message}\n`);
  process.exitCode = 9;
}
