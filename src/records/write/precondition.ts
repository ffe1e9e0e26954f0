// What must hold for a write to happen. A conflict names the current state, so that the caller can decide.
import { conflict, invalid } from "../../core/error.ts";
import { refuseUnknown } from "../../core/suggest.ts";
import { addNotes, noteNames, type CommitNotes } from "../commit.ts";
import { nameRecord, type RecordKey } from "../define/record-key.ts";
import type { RecordUnit, State } from "./record-unit.ts";

export type WriteOptions = CommitNotes & {
  /** Only if this is still its revision. */
  readonly ifRevision?: number;
  /** Only if there is no such record. */
  readonly ifAbsent?: boolean;
  /** Only if this is still the last commit; null: only if there is none. */
  readonly ifHead?: number | null;
};

const optionNames = [...noteNames, "ifRevision", "ifAbsent", "ifHead"];

export function checkWriteOptions(options: WriteOptions, verb: string, more: readonly string[] = []): void {
  refuseUnknown(options, [...optionNames, ...more], verb);
  const { ifRevision, ifAbsent, ifHead } = options;
  if (ifRevision !== undefined && !(Number.isSafeInteger(ifRevision) && ifRevision >= 1)) {
    throw invalid(`ifRevision ${String(ifRevision)} is no revision: they count from 1; use ifAbsent for a new record`);
  }
  if (ifHead !== undefined && ifHead !== null && !(Number.isSafeInteger(ifHead) && ifHead >= 1)) {
    throw invalid(`ifHead ${String(ifHead)} is no commit: they count from 1; use null for an empty book`);
  }
  if (ifAbsent === true && ifRevision !== undefined) throw invalid("ifAbsent and ifRevision cannot both hold");
}

/** Throws `conflict` unless the conditions hold for the state that the unit sees. */
export async function checkPreconditions(
  unit: RecordUnit,
  what: string,
  at: RecordKey,
  state: State | undefined,
  options: WriteOptions,
): Promise<void> {
  const { ifRevision, ifAbsent, ifHead } = options;
  unit.notes = addNotes(unit.notes, options);
  const name = nameRecord(what, at);
  const current = state === undefined ? null : { revision: state.revision, commit: state.commit };
  const about = { type: what, key: at.ends ?? at.key, current };
  if (ifAbsent === true && state !== undefined) {
    throw conflict(`${name} exists, at revision ${state.revision}: read it, then decide`, about);
  }
  if (ifRevision !== undefined && state?.revision !== ifRevision) {
    const now = state === undefined ? "there is none now" : `it is at revision ${state.revision} now`;
    throw conflict(`${name} was expected at revision ${ifRevision}, but ${now}: read it, then decide`, about);
  }
  if (ifHead !== undefined) checkHead(await unit.head(), ifHead);
}

export function checkHead(head: number | null, expected: number | null): void {
  if (head === expected) return;
  throw conflict(
    `the last commit was expected to be ${expected ?? "none"}, but it is ${head ?? "none"}: read again, then decide`,
    { expected, head },
  );
}
