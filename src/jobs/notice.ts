// A notice tells a webhook how something ended: a job, if its definition or its template names one, or a group. It is a call that is
// made in the transaction of the end, whatever brought it about: the run, a recovery, a timeout, a cancel or a skip. So a crash
// loses no notice and sends none too early. The book keeps it with the definition, so a process that never saw the code sends it too.
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { checkWord, refuseUnknown } from "../core/suggest.ts";
import type { Awaitable, Tx } from "../storage/store.ts";
import type { Ports } from "./kind.ts";

export const jobEnds = ["completed", "failed", "cancelled", "skipped"] as const;
export const groupEnds = ["completed", "failed", "partial", "cancelled"] as const;
export type GroupEnd = (typeof groupEnds)[number];

export type Webhook = {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Signs by Standard Webhooks. While a secret is being changed, give both, the new one first. */
  readonly secret?: string | readonly string[];
};

/** Which ends a webhook is told of. */
export type Notice<End extends string> = { readonly on: readonly End[]; readonly webhook: Webhook };

/** A notice as people see it: without what is secret. */
export type ShownNotice = { readonly on: readonly string[]; readonly to: string };

/** What is told: `type` is that of the message, such as `job.failed`. */
export type Notified = {
  readonly tenant: string;
  /** How it ended, which the notice may be for. */
  readonly end: string;
  readonly type: string;
  readonly id: string;
  readonly name: string | null;
  readonly data: unknown;
  /** The run that ended, and the first of those that led to it. */
  readonly runId: string | null;
  readonly rootRunId: string | null;
};

/** The room of calls, which sends notices and keeps their secrets. */
export type Notices = {
  /** What the book keeps of a webhook: JSON of a `KeptNotice`. Only calls of this tenant can be made of it; null: of any. What it keeps
   *  already, `had`, stays if it says the same: each sealing of one text is another, and a process without the key cannot seal. */
  keep(notice: Notice<string>, tenant: string | null, had: string | null): string;
  /** Makes a call of each end. It refuses nothing: an end must not fail for what is told of it. */
  send(tx: Tx, kept: string, said: readonly Notified[]): Awaitable<void>;
  /** Definitions or templates with a notice have changed: whoever remembers whether there are any asks again. */
  changed(tx: Tx): Awaitable<void>;
};

export function checkNotice<End extends string>(given: Notice<End>, ends: readonly End[], what: string): Notice<End> {
  refuseUnknown(given, ["on", "webhook"], `notify of ${what}`);
  const { on, webhook } = given;
  if (!Array.isArray(on) || on.length === 0) {
    throw invalid(`notify of ${what} says on ${quote(on)}: give a list of ends, of ${ends.join(", ")}`);
  }
  refuseUnknown(webhook, ["url", "headers", "secret"], `the webhook of ${what}`);
  return { on: [...new Set(on.map((end: End) => checkWord(end, ends, `notify.on of ${what}`)))], webhook };
}

type Keeping<End> = {
  readonly ends: readonly End[];
  readonly what: string;
  readonly tenant: string | null;
  readonly had?: string | null;
};

/** The same, as the book keeps it. */
export function keptNotice<End extends string>(
  { notices }: Pick<Ports, "notices">,
  given: Notice<End>,
  { ends, what, tenant, had = null }: Keeping<End>,
): string {
  if (notices === undefined) throw invalid(`${what} has a notice, and nothing here can send it`);
  return notices.keep(checkNotice(given, ends, what), tenant, had);
}

export function shownNotice(kept: unknown): ShownNotice | null {
  const notice = typeof kept === "string" ? (JSON.parse(kept) as ShownNotice) : (kept as ShownNotice | null);
  return notice === null ? null : { on: notice.on, to: notice.to };
}
