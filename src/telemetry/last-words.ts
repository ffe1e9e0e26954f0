// What must still be said when an exception that nobody caught is about to end the process.

const speakers = new Set<(error: unknown) => void>();
let unspoken: { readonly error: unknown } | undefined;

/** Returns the function that takes `say` back. */
export function onLastWords(say: (error: unknown) => void): () => void {
  // One listener for all the books of a process: Node takes eleven for a leak and warns.
  if (speakers.size === 0) process.on("uncaughtExceptionMonitor", hear).on("exit", hearExit);
  speakers.add(say);
  return () => {
    speakers.delete(say);
    if (speakers.size === 0) process.off("uncaughtExceptionMonitor", hear).off("exit", hearExit);
  };
}

// The monitor hears the error before the process ends. A program that handles such errors itself, and may go on, is
// left alone.
function hear(error: unknown): void {
  if (process.listenerCount("uncaughtException") > 0 || process.hasUncaughtExceptionCaptureCallback()) {
    // Many such handlers log and then end the process: if it does end, with a failure, this was why.
    unspoken ??= { error };
    return;
  }
  speak(error);
}

function hearExit(code: number): void {
  if (code !== 0 && unspoken !== undefined) speak(unspoken.error);
}

function speak(error: unknown): void {
  for (const say of speakers) {
    try {
      say(error);
    } catch {
      // What ends the process is the error it had, not our failure to write it down.
    }
  }
}
