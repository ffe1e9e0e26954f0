// The registrations of one setup, by name. A name stands for one thing in an instance, because history follows it.
import { invalid } from "../core/error.ts";
import { limits } from "../core/limits.ts";
import { quote } from "../core/quote.ts";
import { differences, type Registration } from "./registration.ts";
import { locationOf } from "./source/call-site.ts";

/** What to do when the name is taken in this instance: refuse it (default), keep the one before if it is set to the same,
 *  or put the new one in its place. */
export type IfExists = "error" | "skip" | "replace";

export type Roster = {
  add(registration: Registration, ifExists: IfExists): Registration;
  readonly all: readonly Registration[];
};

export function createRoster(what: string): Roster {
  const known = new Map<string, Registration>();
  return {
    get all() {
      return [...known.values()];
    },
    add(registration, ifExists) {
      const { name } = registration;
      const before = known.get(name);
      if (before !== undefined && ifExists === "error") throw taken(what, before, registration);
      if (before !== undefined && ifExists === "skip") return keep(what, before, registration);
      if (before === undefined && known.size >= limits.appRegistrationsMax) {
        throw invalid(`${what} has ${known.size} registrations, the most that are allowed: is it a loop without end?`);
      }
      known.set(name, registration);
      return registration;
    },
  };
}

function taken(what: string, before: Registration, again: Registration): Error {
  const places = { first: locationOf(before.site), second: locationOf(again.site) };
  return invalid(
    `${what} registers ${quote(again.name)} twice: at ${places.first} and at ${places.second}. Give one of them ` +
      `another name, or say ifExists: "skip" or "replace"`,
    { details: { name: again.name, ...places } },
  );
}

function keep(what: string, before: Registration, again: Registration): Registration {
  const changed = differences(before, again);
  if (changed.length === 0) return before;
  const places = { first: locationOf(before.site), second: locationOf(again.site) };
  throw invalid(
    `${what} registers ${quote(again.name)} at ${places.second} with ifExists "skip", and other settings than at ` +
      `${places.first}: ${changed.join("; ")}. Make them the same, or say "replace"`,
    { details: { name: again.name, ...places, differences: changed } },
  );
}

export function checkIfExists(value: unknown): IfExists {
  if (value === undefined) return "error";
  if (value === "error" || value === "skip" || value === "replace") return value;
  throw invalid(`ifExists ${quote(value)} is not known: "error", "skip" or "replace"`);
}
