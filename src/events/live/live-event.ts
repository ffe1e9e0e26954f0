/** What a live listener hears. */
export type LiveEvent<Payload = unknown> = {
  /** Null when it was emitted: then it is not in the book. */
  readonly id: string | null;
  readonly tenant: string;
  readonly topic: string;
  /** Every listener gets the same object: look at it, do not change it. */
  readonly payload: Payload;
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  /** When it was said, in epoch milliseconds. */
  readonly at: number;
  /** How many events led to this one. */
  readonly chainDepth: number;
  /** The nearest event of the chain that is in the book, this one included, and the one that began it. */
  readonly stored: { readonly id: string; readonly rootId: string } | null;
  /** The run that said it, if one did, and the run that began its chain. */
  readonly causeRunId: string | null;
  readonly rootRunId: string | null;
};
