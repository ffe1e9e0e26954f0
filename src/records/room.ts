// What the front door gives to the verbs of this room.
import type { Cause } from "../core/cause.ts";
import type { Awaitable, Store, Tx } from "../storage/store.ts";
import type { AnyRecordType } from "./define/definition.ts";

export type ChangeKind = "created" | "updated" | "deleted";

/** A change of a record, stated in the transaction of its commit. */
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
    /** The document from this commit on; of a deleted record, its last document. */
    readonly value: unknown;
  };
};

export type RecordHooks = {
  /** Whether there are listeners to changes of this type. If not, no facts are made. */
  hears(tx: Tx, type: string): Awaitable<boolean>;
  /** `cause` is the run that made the commit; the transaction may run outside of that run's context. */
  onFact(tx: Tx, fact: RecordFact, cause: Cause | undefined): Awaitable<void>;
};

export type RecordRoom = {
  readonly store: Store;
  /** The types of `use` by name. */
  readonly definitions: ReadonlyMap<string, AnyRecordType>;
  readonly hooks: RecordHooks;
  /** The run that is being executed, if any. */
  cause(): Cause | undefined;
};
