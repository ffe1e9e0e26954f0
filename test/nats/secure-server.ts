// The config of a NATS server that talks by TLS alone, and a test's own way into it.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { NatsTls } from "../../src/index.ts";
import { testFolder } from "../support/open-test.ts";
import type { Authority } from "./certificates.ts";
import type { natsServer } from "./nats-server.ts";

type Settings = {
  /** Whose name or address is in its certificate. */
  readonly holder?: string;
  /** The certificate that it must be shown, by this authority. */
  readonly client?: NatsTls;
};

export function secureServer(
  t: TestContext,
  { ca, issue }: Authority,
  { holder = "127.0.0.1", client }: Settings = {},
): NonNullable<Parameters<typeof natsServer>[1]> {
  const folder = testFolder(t);
  const files = { ca, ...issue(holder) };
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, `${name}.pem`), text);
  const shown = client === undefined ? "" : `ca_file: "${folder}/ca.pem", verify: true`;
  // The client would look for "localhost" in it, whatever the address is.
  const tls = { ca, ...client, host: holder };
  return {
    // By itself it gives a handshake two seconds, which a busy machine may not have.
    config: `tls { timeout: 60, cert_file: "${folder}/cert.pem", key_file: "${folder}/key.pem", ${shown} }`,
    client: { tls },
  };
}
