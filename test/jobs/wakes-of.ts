// Whom a unit wakes. Who listens to a store on PostgreSQL also hears later what was said before.
import type { Tx } from "../../src/storage/store.ts";

/** The channels that `unit` wakes. */
export async function wakesOf(tx: Tx, unit: (spied: Tx) => Promise<unknown>): Promise<string[]> {
  const heard: string[] = [];
  const wake = (channel: string): void => void heard.push(channel);
  await unit(Object.defineProperty(tx, "wake", { value: wake }));
  return heard;
}
