// The end of a book in this process: what runs is ended first, then what others may wait for is let go, then the store.
import { leaveBrokers } from "./calls/sink/broker.ts";
import { endWaiting } from "./jobs/waiters.ts";
import { endWatching } from "./records/watch.ts";
import { freeReservationsOf } from "./jobs/direct/reservation.ts";
import type { Rooms } from "./rooms.ts";

export async function closeRooms(rooms: Rooms): Promise<void> {
  const { workers, attachment, store, jobs, calls, ticker, live, apps, folder, worker } = rooms;
  rooms.stopMending();
  await ticker?.stop();
  await Promise.all([...workers].map((worker) => worker.stop()));
  await apps?.here.close();
  await live?.close();
  await leaveBrokers(calls);
  await calls.agents.close();
  // Who only looks at a book leaves it as it is.
  if (worker !== false) await folder.stop();
  // Not before: a handler that waits for another job ends by its signal, which counts no attempt.
  endWaiting(store);
  endWatching(store);
  try {
    // Queues that this process holds go on without waiting for somebody to find out that it has ended.
    await attachment?.detach((tx, { seq }) => freeReservationsOf(tx, jobs.hooks, seq));
  } finally {
    // A book that can no longer be written is closed all the same; others will find its session silent.
    await store.close();
  }
}
