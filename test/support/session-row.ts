// What the tests of sessions ask of a book again and again.
import type { TestContext } from "node:test";
import { systemClock } from "../../src/core/clock.ts";
import { type Book, manualClock, type ManualClock, type OpenOptions } from "../../src/index.ts";
import type { SessionRow } from "../../src/telemetry/session.ts";
import { type Backend, cleanup, openTest } from "./open-test.ts";
import { tamper } from "./tamper.ts";

export async function readSession(book: Book, id: string | null): Promise<SessionRow> {
  const [row] = await book.read((tx) => tx.sql<SessionRow>`select * from daybook_session where id = ${id}`);
  if (row === undefined) throw new Error(`there is no session ${id}`);
  return row;
}

/** Asks until the answer is something other than undefined. It gives up only when the test would hang otherwise. */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined>,
  { ms = 30_000 }: { ms?: number } = {},
): Promise<T> {
  const deadline = systemClock.monotonic() + ms;
  while (systemClock.monotonic() < deadline) {
    const answer = await ask();
    if (answer !== undefined) return answer;
    await systemClock.sleep(20);
  }
  throw new Error(`waited ${ms} ms in vain: ${what}`);
}

/** Resolves to the row once its beat counter has moved past `beat`. */
export function untilBeat(book: Book, id: string | null, beat: number): Promise<SessionRow> {
  return until(`session ${id} beats after ${beat}`, async () => {
    const row = await readSession(book, id);
    return row.beat > beat ? row : undefined;
  });
}

/** Lets a manual clock run until the work is done: writers that make room for each other sleep on it. By default it
 *  runs slower than real time, so that what a busy machine adds does not count. */
export async function whileTimePasses<T>(clock: ManualClock, work: Promise<T>, stepMs = 1): Promise<T> {
  let done = false;
  const end = (): void => void (done = true);
  work.then(end, end);
  while (!done) {
    await clock.advance(stepMs);
    if (!done) await systemClock.sleep(5);
  }
  return work;
}

/** A book with a clock of its own beside others on the same book: it needs its time also to be closed. */
export async function openBeside(
  t: TestContext,
  backend: Backend,
  options: OpenOptions & { readonly url: string; readonly clock: ManualClock },
): Promise<Book> {
  const { book } = await openTest(t, backend, options);
  cleanup(t, () => whileTimePasses(options.clock, book.close()));
  return book;
}

/** Five seconds of the observer's time in which it beats, and then looks at the others. Repeated `times` times. */
export async function observe(observer: Book, clock: ManualClock, times: number): Promise<void> {
  for (let count = 0; count < times; count++) {
    const { beat } = await readSession(observer, observer.sessionId);
    await clock.advance(5000);
    await whileTimePasses(clock, untilBeat(observer, observer.sessionId, beat));
    await whileTimePasses(clock, observer.sessions.look());
  }
}

/** Makes the session one of another machine, so that nothing can be proved about its process. */
export async function moveElsewhere(book: Book, id: string | null): Promise<void> {
  await tamper(book, async (tx) => {
    await tx.sql`update daybook_session set host = 'elsewhere' where id = ${id}`;
    // A book in a file has one machine only: another name there is another container of it.
    if (book.location.startsWith("postgres")) await tx.sql`update daybook_session set host_boot = 'x' where id = ${id}`;
  });
}

/** A clock that can jump as it does when the machine was asleep: time has passed and no timer fired. */
export function clockThatSleeps(): { clock: ManualClock; sleep(ms: number): void } {
  const inner = manualClock();
  let sleptMs = 0;
  const clock = { ...inner, now: () => inner.now() + sleptMs, monotonic: () => inner.monotonic() + sleptMs };
  return { clock, sleep: (ms) => void (sleptMs += ms) };
}
