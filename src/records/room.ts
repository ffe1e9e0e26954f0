// What the verbs of this room need from the front door.
import type { Cause } from "../core/cause.ts";
import type { Awaitable, Store, Tx } from "../storage/store.ts";
import type { AnyRecordType } from "./define/definition.ts";

export type ChangeKind = "created" | "updated" | "deleted";

/** Stated in the transaction of the commit that changed the record. */
export type RecordFact = {
  readonly type: `record.${string}.${ChangeKind}`;
  readonly record: {
    readonly tenant: string;
    readonly type: string;
    readonly key: string;
    readonly from: string | null;
    readonly to: string | null;
    readonly instance: string | null;
    readonly kind: ChangeKind;
    readonly revision: number;
    readonly commit: number;
    /** The document as it is from this commit on; of one that was deleted, as it was. */
    readonly value: unknown;
  };
};

export type RecordHooks = {
  /** Whether anybody listens to changes of this type; facts of others are not made. */
  hears?(tx: Tx, type: string): Awaitable<boolean>;
  /** `cause` is the run that made the commit. The transaction may run outside of its context. */
  onFact?(tx: Tx, fact: RecordFact, cause: Cause | undefined): Awaitable<void>;
};

export type RecordRoom = {
  readonly store: Store;
  /** The types of `use` by name. */
  readonly definitions: ReadonlyMap<string, AnyRecordType>;
  readonly hooks: RecordHooks;
  /** The run that is being executed, if any. */
  cause(): Cause | undefined;
};
