// Who we are to a NATS server, checked before anything connects. No message here shows what was given.
import { invalid } from "../../../core/error.ts";
import { refuseUnknown } from "../../../core/suggest.ts";

/** Who we are to the server. A secret belongs here and not into the URL, which is shown in errors. */
export type NatsAuth =
  | { readonly token: string }
  | { readonly user: string; readonly password: string }
  /** The seed of an nkey. */
  | { readonly nkey: string }
  /** The text of a credentials file, of decentralised accounts. */
  | { readonly credentials: string };

/** The same, as the client wants it: a credentials file is a JWT and the seed that proves it is ours. */
export type NatsIdentity = Exclude<NatsAuth, { credentials: string }> | { readonly jwt: string; readonly nkey: string };

const ways: readonly (readonly string[])[] = [["token"], ["user", "password"], ["nkey"], ["credentials"]];

export function natsIdentity(auth: NatsAuth): NatsIdentity {
  const given = Object.entries(auth);
  refuseUnknown(auth, ways.flat(), "nats.auth");
  const isWay = ways.some((way) => way.length === given.length && way.every((name) => name in auth));
  if (!isWay || given.some(([, value]) => typeof value !== "string" || value === "")) {
    throw invalid(
      "nats auth is { token }, { user, password }, { nkey } or { credentials }, each a text that is not empty",
    );
  }
  if ("nkey" in auth) {
    return {
      nkey: seedOf(auth.nkey, 'nats auth.nkey is no seed of a user: 58 letters and digits that begin with "SU"'),
    };
  }
  return "credentials" in auth ? readCredentials(auth.credentials) : auth;
}

/** Whatever stands between two lines of dashes, as the tools of NATS write and read it; with any ends of lines. */
const part = /-{3,}[^\r\n]*-{3,}\s+(\S+)\s+-{3,}[^\r\n]*-{3,}/g;

function readCredentials(text: string): NatsIdentity {
  const [jwt = "", seed = ""] = text.matchAll(part).map(([, inner = ""]) => inner);
  const what = "nats auth.credentials has no JWT and seed of a user: give the text of the file, not its name";
  if (!/^[\w-]+\.[\w-]+\.[\w-]+$/.test(jwt)) throw invalid(what);
  return { jwt, nkey: seedOf(seed, what) };
}

/** From a file it often comes with the end of its line. */
function seedOf(text: string, otherwise: string): string {
  const seed = text.trim();
  if (/^SU[A-Z2-7]{56}$/.test(seed)) return seed;
  throw invalid(otherwise);
}
