// Time and chance for code that also runs in a browser, on Deno and on Bun, where the clock and the ids of the engine cannot be.

/** Rejects with the reason of the signal. */
export function waitAnywhere(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const end = (): void => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", end);
      resolve();
    }, ms);
    if (signal?.aborted === true) end();
    else signal?.addEventListener("abort", end, { once: true });
  });
}

/** Milliseconds that only go forward. */
export function elapsedMs(): number {
  return performance.now();
}

/** 128 bits of chance in hexadecimal; unlike `randomUUID` it is also there on a page that came without TLS. */
export function randomKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/** `ms`, give or take half of it, so that many who wait do not come back together. */
export function spread(ms: number): number {
  return ms * (0.5 + Math.random());
}

/** The wall clock. */
export function wallMs(): number {
  return Date.now();
}

/** Calls once, later; what it returns takes that back. */
export function afterAnywhere(ms: number, call: () => void): () => void {
  const timer = setTimeout(call, ms);
  return () => clearTimeout(timer);
}

/** Calls again and again; what it returns ends that. */
export function everyAnywhere(ms: number, call: () => void): () => void {
  const timer = setInterval(call, ms);
  return () => clearInterval(timer);
}
