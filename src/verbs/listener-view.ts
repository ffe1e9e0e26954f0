// How a person reads what a listener and a sink have in common.
import type { Lag, ListenerRecord, SinkRecord } from "../index.ts";
import { count, time, words, type Cell } from "./shown.ts";

type Hearing = ListenerRecord | SinkRecord;

/** Cells of a table. */
export const hearing = {
  topics: (each: Hearing) => each.topics.join(", "),
  state: stateOf,
  lag: (each: Hearing) => each.lag.events,
  oldest: (each: Hearing) => (each.lag.events === 0 ? null : seconds(each.lag)),
};

function stateOf({ state, paused, hosted }: Hearing): string {
  return [state.replace("_", " "), ...(paused === null ? [] : ["paused"]), ...(hosted ? [] : ["no host"])].join(", ");
}

export function lagOf(lag: Lag): string {
  return lag.events === 0 ? "nothing waits" : `${count(lag.events, "event")}, the oldest published ${seconds(lag)} ago`;
}

function seconds(lag: Lag): string {
  return `${Math.round(lag.seconds)} s`;
}

export function hearingFields(of: Hearing): { [name: string]: Cell } {
  const { paused } = of;
  return {
    state: stateOf(of),
    paused: paused === null ? null : words(time(paused.at), paused.note),
    lag: lagOf(of.lag),
    "dead letters": of.deadLetters,
    attempts: of.attempts,
    queue: of.queue,
    "for all tenants": of.forAllTenants ? "yes" : null,
    since: time(of.registeredAt),
  };
}
