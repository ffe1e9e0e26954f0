// Certificates for tests of TLS, made by Node alone: it can sign them, and the few lines of DER that it has no words for are here.
// They are valid from 2020 to 2049, so that no clock decides a test.
import { generateKeyPairSync, sign, type KeyObject } from "node:crypto";

export type Certificate = { readonly cert: string; readonly key: string };
export type Authority = {
  /** Its own certificate. */
  readonly ca: string;
  /** A certificate that it signed, for an IPv4 address or a name. */
  issue(holder: string): Certificate;
};

/** Somebody who signs certificates, and whom nobody trusts who is not told to. */
export function authority(name: string): Authority {
  const own = generateKeyPairSync("ec", { namedCurve: "P-256" });
  let serial = 1;
  const make = (holder: string, publicKey: KeyObject, extension: Buffer): string => {
    const body = der(
      0x30,
      ...[der(0xa0, integer(2)), integer(serial++), ecdsaWithSha256, nameOf(name)],
      ...[der(0x30, utcTime("200101000000Z"), utcTime("491231235959Z")), nameOf(holder)],
      ...[publicKey.export({ type: "spki", format: "der" }), der(0xa3, der(0x30, extension))],
    );
    return pem(der(0x30, body, ecdsaWithSha256, bits(sign("sha256", body, own.privateKey))));
  };
  return {
    ca: make(name, own.publicKey, isAuthority),
    issue(holder) {
      const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
      const key = privateKey.export({ type: "pkcs8", format: "pem" }).toString();
      return { cert: make(holder, publicKey, alsoKnownAs(holder)), key };
    },
  };
}

/** A tag, a length of one to three bytes, and what is inside. */
function der(tag: number, ...inside: readonly Uint8Array[]): Buffer {
  const body = Buffer.concat(inside);
  const { length } = body;
  const size = length < 0x80 ? [length] : length < 0x100 ? [0x81, length] : [0x82, length >> 8, length & 0xff];
  return Buffer.concat([Buffer.from([tag, ...size]), body]);
}

const integer = (value: number): Buffer => der(0x02, Buffer.from([value]));
const utcTime = (text: string): Buffer => der(0x17, Buffer.from(text));
const bits = (bytes: Uint8Array): Buffer => der(0x03, Buffer.from([0]), bytes);
const objectId = (hex: string): Buffer => der(0x06, Buffer.from(hex, "hex"));

const ecdsaWithSha256 = der(0x30, objectId("2a8648ce3d040302"));
const nameOf = (text: string): Buffer =>
  der(0x30, der(0x31, der(0x30, objectId("550403"), der(0x0c, Buffer.from(text)))));
/** Basic constraints, critical: it may sign others. */
const isAuthority = der(
  0x30,
  ...[objectId("551d13"), der(0x01, Buffer.from([0xff])), der(0x04, der(0x30, der(0x01, Buffer.from([0xff]))))],
);

function alsoKnownAs(holder: string): Buffer {
  const isAddress = /^\d+(?:\.\d+){3}$/.test(holder);
  const name = isAddress ? der(0x87, Buffer.from(holder.split(".").map(Number))) : der(0x82, Buffer.from(holder));
  return der(0x30, objectId("551d11"), der(0x04, der(0x30, name)));
}

function pem(bytes: Buffer): string {
  const lines = bytes.toString("base64").match(/.{1,64}/g) ?? [];
  return ["-----BEGIN CERTIFICATE-----", ...lines, "-----END CERTIFICATE-----", ""].join("\n");
}
