// Decentralised accounts of NATS for tests: an operator, an account of his with JetStream, and users with their credentials files. What
// its own tool would write is signed here with the keys that the client brings.
import { credsAuthenticator, nkeys, type Authenticator } from "@nats-io/transport-node";

type Pair = ReturnType<typeof nkeys.createUser>;

export type Accounts = {
  /** What the server's config says of them. */
  readonly config: string;
  /** The text of a new user's credentials file. */
  user(): string;
  /** A test's own way in, as a user of that account. */
  authenticator(): Authenticator;
};

export function accounts(): Accounts {
  const [operator, account, system] = [nkeys.createOperator(), nkeys.createAccount(), nkeys.createAccount()];
  const unlimited = { subs: -1, data: -1, payload: -1, imports: -1, exports: -1, conn: -1, leaf: -1 };
  const ofAccount = (pair: Pair, limits: object): string =>
    `${pair.getPublicKey()}: ${claim(pair, operator, { type: "account", limits: { ...unlimited, ...limits } })}`;
  const streams = { mem_storage: -1, disk_storage: -1, streams: -1, consumer: -1 };
  function user(): string {
    const pair = nkeys.createUser();
    const jwt = claim(pair, account, { type: "user", subs: -1, data: -1, payload: -1 });
    return `-----BEGIN NATS USER JWT-----\n${jwt}\n------END NATS USER JWT------\n
-----BEGIN USER NKEY SEED-----\n${seedOf(pair)}\n------END USER NKEY SEED------\n`;
  }
  return {
    config: `operator: ${claim(operator, operator, { type: "operator" })}
      system_account: ${system.getPublicKey()}
      resolver: MEMORY
      resolver_preload: {
        ${ofAccount(account, streams)}
        ${ofAccount(system, {})}
      }`,
    user,
    authenticator: () => credsAuthenticator(new TextEncoder().encode(user())),
  };
}

export const seedOf = (pair: Pair): string => new TextDecoder().decode(pair.getSeed());

/** Somebody is said to be somebody, signed by whoever may say so. */
function claim(of: Pair, by: Pair, nats: object): string {
  const names = { sub: of.getPublicKey(), iss: by.getPublicKey(), name: "test", jti: of.getPublicKey() };
  const said = [
    { typ: "JWT", alg: "ed25519-nkey" },
    { ...names, iat: 1_577_836_800, nats: { ...nats, version: 2 } },
  ].map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"));
  const text = said.join(".");
  return `${text}.${Buffer.from(by.sign(new TextEncoder().encode(text))).toString("base64url")}`;
}
