// Signs by Standard Webhooks: the receiver can tell that a request comes from us, is complete and is fresh. While a secret is
// being changed, both secrets sign, and the receiver accepts the one it knows.
import { createHmac } from "node:crypto";
import type { RequestContent } from "../request/content.ts";

type Sent = {
  /** The Idempotency-Key, and the id of the signature. */
  readonly id: string;
  readonly now: number;
  readonly body: Buffer | null;
};

/** The headers of one request: the client's, the caller's over them, and the signature if there is a secret. */
export function outgoingHeaders(
  { headers, secrets }: Pick<RequestContent, "headers" | "secrets">,
  { id, now, body }: Sent,
): Record<string, string> {
  return {
    accept: "*/*",
    "accept-encoding": "identity",
    "user-agent": "daybook",
    "idempotency-key": id,
    ...headers,
    ...(secrets.length === 0 ? {} : signature(id, Math.floor(now / 1000), body ?? Buffer.alloc(0), secrets)),
  };
}

function signature(id: string, seconds: number, body: Buffer, secrets: readonly string[]): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const signed = createHmac("sha256", keyOf(secret)).update(`${id}.${seconds}.`).update(body).digest("base64");
    return `v1,${signed}`;
  });
  return { "webhook-id": id, "webhook-timestamp": String(seconds), "webhook-signature": signatures.join(" ") };
}

function keyOf(secret: string): Buffer {
  const prefix = "whsec_";
  return secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), "base64") : Buffer.from(secret);
}
