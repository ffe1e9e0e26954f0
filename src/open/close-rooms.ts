// The end of a book in this process: what runs is ended first, then what others may wait for is let go, then the store.
import { AsyncLocalStorage } from "node:async_hooks";
import { closeAccess, endAccessOf } from "../access/access.ts";
import { leaveBrokers } from "../calls/sink/broker.ts";
import { DaybookError } from "../core/error.ts";
import { endWaiting } from "../jobs/result.ts";
import { endWatching } from "../records/watch.ts";
import { freeReservationsOf } from "../jobs/direct/reservation.ts";
import type { Rooms } from "./rooms.ts";
import { currentCause } from "../core/cause.ts";

/** What the book does itself to close: an app that is told to stop may still use its book. */
const closing = new AsyncLocalStorage<true>();

export async function closeRooms(rooms: Rooms): Promise<void> {
  const { store } = rooms;
  store.refuse = (verb) => {
    // A handler that uses its grace to end its work needs the book for it.
    if (closing.getStore() === undefined && currentCause() === undefined) throw closed(verb);
  };
  try {
    await closing.run(true, () => endAll(rooms));
  } finally {
    // A handler that works on after this has ignored its signal. Its end is settled, and that is all.
    store.refuse = (verb) => {
      throw closed(verb);
    };
  }
}

function closed(verb: string): DaybookError {
  return new DaybookError("closed", `${verb} was called after book.close(): open the book again`);
}

async function endAll(rooms: Rooms): Promise<void> {
  const { workers, store, ticker, live, apps } = rooms;
  rooms.stopMending();
  await ticker?.stop();
  // Live handlers are told at once: they do not wait for the jobs, which may take their whole grace.
  await Promise.all([live?.bus.quiet(), ...[...workers].map((worker) => worker.stop())]);
  await apps?.here.close();
  await closeAccess(rooms.access);
  await live?.close();
  // Not before: a handler that waits for another job ends by its signal, which counts no attempt.
  endWaiting(store);
  endWatching(store);
  const working = [...workers].filter((worker) => worker.running > 0);
  if (working.length === 0) return leave(rooms);
  // A handler that ignores its signal keeps the session, so that no other process takes its job for lost while it works on it. It keeps
  // neither its caller nor the process: should that end first, the others see that it is gone.
  store.unref();
  void Promise.all(working.map((worker) => worker.ended()))
    .then(() => leave(rooms))
    .catch(() => undefined);
}

async function leave({ attachment, store, jobs, calls, rollUp, worker, log }: Rooms): Promise<void> {
  await leaveBrokers(calls);
  await calls.agents.close();
  // A process that only looks at a book leaves it as it is.
  if (worker !== false) await rollUp.stop();
  try {
    // Queues that this process holds go on without waiting until another finds out that it has ended.
    await attachment?.detach(async (tx, { seq }) => {
      await freeReservationsOf(tx, jobs, seq);
      await endAccessOf(tx, seq);
    });
  } finally {
    log.close();
    // A book that can no longer be written is closed all the same; others will find its session silent.
    await store.close();
  }
}
