// Standard Webhooks: the receiver can tell that a request comes from us, is complete and is fresh. While a secret is
// changed, each of them signs, and the receiver takes whichever it knows.
import { createHmac } from "node:crypto";

export type Signed = {
  readonly id: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly body: Buffer;
  readonly secrets: readonly string[];
};

export function signatureHeaders({ id, timestamp, body, secrets }: Signed): Record<string, string> {
  const head = `${id}.${timestamp}.`;
  const signatures = secrets.map((secret) => {
    const signature = createHmac("sha256", keyOf(secret)).update(head).update(body).digest("base64");
    return `v1,${signature}`;
  });
  return { "webhook-id": id, "webhook-timestamp": String(timestamp), "webhook-signature": signatures.join(" ") };
}

function keyOf(secret: string): Buffer {
  const prefix = "whsec_";
  return secret.startsWith(prefix) ? Buffer.from(secret.slice(prefix.length), "base64") : Buffer.from(secret);
}
