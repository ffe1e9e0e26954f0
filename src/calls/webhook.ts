// Webhooks: where sinks and notices go. A message is a CloudEvent; a notice is a call that is made when something ends, in the same
// transaction. The book keeps the webhook of a notice sealed, and so does its call, which adds the message: so an end can be told by
// a process that has no key, and only one that has it sends.
import { isPlain } from "../core/json.ts";
import { refuseUnknown } from "../core/suggest.ts";
import type { KeyRing } from "../core/seal.ts";
import { isoTime } from "../core/time.ts";
import type { Tx } from "../storage/store.ts";
import type { Notice, Notices, Notified, ShownNotice, Webhook } from "../jobs/notice.ts";
import { checkRequest, type RequestContent } from "./request/content.ts";
import {
  isSameWebhook,
  keepWebhook,
  resealWebhook,
  withMessage,
  type ShownRequest,
  type WebhookColumns,
} from "./request/kept.ts";
import type { CallsRoom } from "./room.ts";
import { cloudEventsJson, type CloudEvent } from "./sink/broker.ts";
import { checkPolicy, insertCalls, shortName, type NewCall } from "./submit.ts";

/** Checks a webhook. The message becomes its body. */
export function checkWebhook(webhook: Webhook): RequestContent {
  refuseUnknown(webhook, ["url", "headers", "secret"], "webhook");
  const { url, headers, secret } = webhook;
  return checkRequest({
    method: "POST",
    url,
    body: "",
    headers: headers === undefined ? { "content-type": cloudEventsJson } : withType(headers),
    ...(secret === undefined ? {} : { secret }),
  });
}

// What is no plain object is refused with the request.
function withType(headers: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  return isPlain(headers) ? { "content-type": cloudEventsJson, ...headers } : headers;
}

/** What the book keeps of a notice: what is secret of its request is in `content` alone. */
type KeptNotice = ShownNotice & {
  readonly host: string;
  /** Whose calls can be made of it: of one tenant, or "*". */
  readonly whose: string;
  readonly columns: WebhookColumns;
};

export function noticesOf(room: CallsRoom, changed: Notices["changed"]): Notices {
  return {
    keep: (notice, tenant, had) => keep(room, notice, tenant ?? "*", had),
    async send(tx, kept, said) {
      const notice = JSON.parse(kept) as KeptNotice;
      await insertCalls(
        tx,
        room,
        said.map((each) => callOf(tx, notice, each)),
      );
    },
    changed,
  };
}

function keep({ settings }: CallsRoom, { on, webhook }: Notice<string>, whose: string, had: string | null): string {
  const content = checkWebhook(webhook);
  if (had !== null) {
    const old = JSON.parse(had) as KeptNotice;
    const same = old.whose === whose && old.on.join() === on.join();
    if (same && isSameWebhook(settings.keys, old.columns, whose, content)) return had;
  }
  const columns = keepWebhook(content, settings.keys, whose);
  const { url } = JSON.parse(columns.request) as ShownRequest;
  const kept: KeptNotice = { on, to: url, host: new URL(content.url).host, whose, columns };
  return JSON.stringify(kept);
}

/** The key that a kept notice is sealed with; null: it is in clear. */
export function keyOfNotice(kept: string): string | null {
  return (JSON.parse(kept) as KeptNotice).columns.key_id;
}

/** The same notice, sealed with the first key. */
export function resealNotice(keys: KeyRing, text: string): string {
  const kept = JSON.parse(text) as KeptNotice;
  const anew: KeptNotice = { ...kept, columns: resealWebhook(keys, kept.columns, kept.whose) };
  return JSON.stringify(anew);
}

const policy = checkPolicy({ retry: "standard" });

function callOf(tx: Tx, kept: KeptNotice, said: Notified): NewCall {
  const { tenant, type, id: subject, name, data, runId, rootRunId } = said;
  const id = tx.ids();
  const message: CloudEvent = {
    specversion: "1.0",
    id,
    source: `daybook:${tenant}`,
    type,
    time: isoTime(tx.now),
    subject,
    datacontenttype: "application/json",
    data,
  };
  const body = JSON.stringify(message);
  const cause = runId === null ? undefined : { runId, rootRunId: rootRunId ?? runId, parentRunId: null };
  return {
    id,
    tenant,
    method: "POST",
    host: kept.host,
    name: shortName(name === null ? type : `${type} ${name}`),
    ...withMessage(kept.columns, kept.whose, body),
    at: null,
    delayMs: 0,
    tags: [noticeTag],
    idempotencyKey: null,
    correlationId: null,
    policy,
    cause,
    notice: true,
  };
}

/** Finds the calls that tell of ends: `calls list --tag notice`. */
const noticeTag = "notice";
