// daybook serve as its users start it: what it prints is where it is found, by whom it may be found, and how it ends.
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { request } from "node:https";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { test, type TestContext } from "node:test";
import { certificate } from "../calls/certificate.ts";
import { cleanup, testFolder } from "../support/open-test.ts";
import { startCli, type Ended } from "./run-cli.ts";

type Serving = { readonly url: string; readonly link: string | null; stop(): Promise<Ended> };

async function serve(t: TestContext, ...args: string[]): Promise<Serving> {
  const { child, ended } = startCli(["serve", "--port", "0", "--json", ...args]);
  const stop = async (): Promise<Ended> => {
    child.kill("SIGTERM");
    return ended;
  };
  cleanup(t, stop);
  if (child.stdout === null) throw new Error("it says nothing");
  for await (const line of createInterface({ input: child.stdout })) {
    return { ...(JSON.parse(line) as { url: string; link: string | null }), stop };
  }
  throw new Error((await ended).stderr);
}

test("the address that a server prints is one that it answers, and so is its link", async (t) => {
  const book = join(testFolder(t), "shop.db");
  const { url, link, stop } = await serve(t, "--book", book, "--host", "127.0.0.2");

  const live = await fetch(`${url}/health/live`);
  const login = await fetch(link ?? assert.fail("there is no link"), { redirect: "manual" });

  assert.match(url, /^http:\/\/127\.0\.0\.2:\d+$/);
  assert.deepEqual([live.status, login.status], [200, 303]);
  const { code, stderr } = await stop();
  assert.deepEqual([code, stderr], [0, ""]);
});

test("a server on an address of other machines wants a certificate, and says what is wrong with one", async (t) => {
  const folder = testFolder(t);
  const [book, broken] = [join(folder, "shop.db"), join(folder, "broken.pem")];
  writeFileSync(broken, "no certificate");
  const failing = async (...args: string[]): Promise<Ended> => startCli(["serve", "--book", book, ...args]).ended;

  const open = await failing("--host", "192.0.2.1");
  const half = await failing("--tls-cert", broken);
  const missing = await failing("--tls-cert", join(folder, "nothing.pem"), "--tls-key", broken);
  const wrong = await failing("--tls-cert", broken, "--tls-key", broken);

  assert.match(open.stderr, /tokens would travel in clear: give a certificate/);
  assert.match(half.stderr, /give both --tls-cert and --tls-key/);
  assert.match(missing.stderr, /the TLS cert cannot be read/);
  assert.match(wrong.stderr, /are no certificate and key in PEM that fit: /);
  assert.deepEqual(
    [open, half, missing, wrong].map(({ code }) => code),
    [3, 2, 2, 2],
  );
});

test("with a certificate it is served over TLS, and its cookies are for that alone", async (t) => {
  const folder = testFolder(t);
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  writeFileSync(cert, certificate.cert);
  writeFileSync(key, certificate.key);
  const { link } = await serve(t, "--book", join(folder, "shop.db"), "--tls-cert", cert, "--tls-key", key);

  const { status, cookie } = await new Promise<{ status: number | undefined; cookie: string }>((resolve, reject) => {
    const asked = request(link ?? "", { ca: certificate.cert }, (response) => {
      void text(response).then(() =>
        resolve({ status: response.statusCode, cookie: String(response.headers["set-cookie"]) }),
      );
    });
    asked.on("error", reject).end();
  });

  assert.equal(status, 303);
  assert.match(cookie, /^daybook_login=dbl_[\w-]+; Path=\/; HttpOnly; SameSite=Strict; Max-Age=\d+; Secure$/);
});
