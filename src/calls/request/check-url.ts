// The URL of a call, as far as it can be judged before it is sent.
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { shownUrl } from "./redact.ts";

export function checkUrl(given: unknown): URL {
  if (typeof given !== "string" && !(given instanceof URL)) throw invalid(`a call needs a url, such as ${example}`);
  const text = String(given);
  if (Buffer.byteLength(text) > limits.callUrlBytesMax) {
    throw invalid(`the url is ${Buffer.byteLength(text)} bytes long; at most ${limits.callUrlBytesMax}`);
  }
  // A parser of URLs drops line breaks without a word, and what was meant is then anybody's guess.
  if (/[\s\p{Cc}]/u.test(text)) throw invalid("the url has white space or a control character: encode it");
  // It also reads more slashes than two, and backslashes, and what others make of those differs.
  const url = /^[a-z][a-z0-9+.-]*:\/\/[^/?#]/i.test(text) && !text.includes("\\") ? URL.parse(text) : null;
  // It is not shown when it cannot be read, since nobody knows what is secret in it.
  if (url === null) throw invalid(`the url cannot be read: write it in full, such as ${example}`);
  if (url.protocol !== "http:" && url.protocol !== "https:") {
    throw invalid(`the url has the scheme ${url.protocol.slice(0, 40)} and calls are made by http and https`);
  }
  if (url.username !== "" || url.password !== "") {
    throw invalid(`the url of ${url.host} carries a user name or a password: use an Authorization header`);
  }
  if (url.port === "0") throw invalid(`the url ${shownUrl(url)} has port 0`);
  url.hash = "";
  return url;
}

const example = "https://api.example.com/orders";
