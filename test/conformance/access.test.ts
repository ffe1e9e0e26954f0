// Who may use the book from elsewhere: tokens, one-time links, and logins of browsers.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { manualClock, type Book } from "../../src/index.ts";
import { limits } from "../../src/core/limits.ts";
import { allText } from "../support/book-text.ts";
import { backends, openTest } from "../support/open-test.ts";
import { until } from "../support/session-row.ts";

/** Every way in which a secret may be almost right. */
function almost(secret: string): Record<string, unknown> {
  const last = secret.at(-1) === "A" ? "B" : "A";
  return {
    empty: "",
    "cut by one": secret.slice(0, -1),
    "cut to its prefix": "dbk_",
    "one more letter": `${secret}A`,
    "another last letter": `${secret.slice(0, -1)}${last}`,
    "upper case": secret.toUpperCase(),
    "lower case": secret.toLowerCase(),
    "with a space": ` ${secret}`,
    "with a line break": `${secret}\n`,
    "with U+0000": `${secret.slice(0, -1)}\0`,
    "another prefix": secret.replace("dbk_", "dbo_"),
    "without its prefix": secret.slice(4),
    "its id alone": secret.slice(4, 14),
    "its id with no secret": `${secret.slice(0, 15)}${"A".repeat(43)}`,
    "another id": secret.replace(/^dbk_.{10}/, "dbk_aaaaaaaaaa"),
    huge: secret.repeat(100_000),
    "a number": 7,
    "nothing at all": undefined,
    "an object": { secret },
  };
}

async function revokedElsewhere(book: Book, secret: string): Promise<void> {
  await until("the token is refused", async () => ((await book.access.identify(secret)) === null ? true : undefined));
}

for (const backend of backends) {
  describe(`access on ${backend}`, { concurrency: true }, () => {
    test("a token says who calls, for which tenant, in which role and for what", async (t) => {
      const { book } = await openTest(t, backend);

      const whole = await book.tokens.create({ role: "admin", tenant: null, name: "the owner" });
      const worker = await book.tokens.create({
        role: "worker",
        tenant: "acme",
        queues: ["mail", "mail"],
        names: ["send"],
      });

      assert.match(whole.secret, /^dbk_[a-z0-9]{10}_[\w-]{43}$/);
      assert.ok(whole.secret.startsWith(`dbk_${whole.id}_`));
      assert.deepEqual(await book.access.identify(whole.secret), {
        tokenId: whole.id,
        name: "the owner",
        tenant: null,
        role: "admin",
        queues: null,
        names: null,
      });
      assert.deepEqual(await book.access.identify(worker.secret), {
        tokenId: worker.id,
        name: worker.id,
        tenant: "acme",
        role: "worker",
        queues: ["mail"],
        names: ["send"],
      });
    });

    test("what is almost a token lets nobody in, neither as a bearer nor at a login", async (t) => {
      const { book } = await openTest(t, backend);
      const { secret } = await book.tokens.create({ role: "read", tenant: "acme" });

      for (const [how, wrong] of Object.entries(almost(secret))) {
        assert.equal(await book.access.identify(wrong as string), null, how);
        assert.equal(await book.access.login(wrong as string), null, how);
        assert.equal(await book.access.identifyCookie(wrong as string), null, how);
      }
      assert.equal((await book.access.identify(secret))?.role, "read");
    });

    test("a token ends at its time, to the millisecond, and its logins with it", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { clock });
      const { secret, createdAt, expiresAt } = await book.tokens.create({
        role: "read",
        tenant: "acme",
        expires: "1h",
      });
      const login = await book.access.login(secret);

      clock.step("1h");
      clock.step(-1);
      const before = [await book.access.identify(secret), await book.access.identifyCookie(login?.cookie ?? "")];
      clock.step(1);
      const after = [await book.access.identify(secret), await book.access.identifyCookie(login?.cookie ?? "")];

      assert.equal(expiresAt, createdAt + 3_600_000);
      assert.equal(login?.expiresAt, expiresAt);
      assert.ok(before.every((caller) => caller?.tenant === "acme"));
      assert.deepEqual(after, [null, null]);
      assert.equal(await book.access.login(secret), null);
    });

    test("a token that is revoked lets nobody in from then on, here and in another process, and its logins end", async (t) => {
      const { book, url } = await openTest(t, backend);
      const { book: other } = await openTest(t, backend, { url });
      const { secret, id } = await book.tokens.create({ role: "operate", tenant: "acme" });
      const cookie = (await book.access.login(secret))?.cookie ?? "";
      assert.ok((await other.access.identify(secret)) && (await other.access.identifyCookie(cookie)));

      const { revokedAt } = await book.tokens.revoke(id);

      assert.equal(typeof revokedAt, "number");
      assert.equal(await book.access.identify(secret), null);
      assert.equal(await book.access.identifyCookie(cookie), null);
      assert.equal(await book.access.login(secret), null);
      await revokedElsewhere(other, secret);
      assert.equal(await other.access.identifyCookie(cookie), null);
      assert.equal((await book.tokens.revoke(id)).revokedAt, revokedAt);
      await assert.rejects(book.tokens.revoke("none"), { code: "not_found" });
    });

    test("when a token was last used is known to a minute", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { clock });
      const { secret, createdAt, lastUsedAt } = await book.tokens.create({ role: "read", tenant: "acme" });
      const lastUse = async (): Promise<number | null | undefined> => (await book.tokens.list()).items[0]?.lastUsedAt;

      clock.step("10s");
      await book.access.identify(secret);
      const first = await until("the use is written", async () => (await lastUse()) ?? undefined);
      clock.step("30s");
      await book.access.identify(secret);
      clock.step("31s");
      await book.access.identify(secret);
      await until("the second use is written", async () => ((await lastUse()) === first ? undefined : true));

      assert.equal(lastUsedAt, null);
      assert.equal(first, createdAt + 10_000);
      assert.equal(await lastUse(), createdAt + 71_000);
    });

    test("tokens are listed, the newest first, and those that are over only when they are asked for", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { clock });
      const made = [];
      for (const tenant of ["a", "b", null, "a"]) made.push(await book.tokens.create({ role: "read", tenant }));
      await book.tokens.create({ role: "read", tenant: "a", expires: "1m" });
      await book.tokens.revoke(made[0]?.id ?? "");
      clock.step("2m");
      const idsOf = (items: readonly { id: string }[]): string[] => items.map(({ id }) => id);

      const first = await book.tokens.list({ limit: 2 });
      const second = await book.tokens.list({ limit: 2, after: first.next ?? "" });

      assert.deepEqual(idsOf([...first.items, ...second.items]), idsOf(made).toReversed().slice(0, 3));
      assert.equal(second.next, null);
      assert.equal((await book.tokens.list({ all: true })).items.length, 5);
      assert.deepEqual(idsOf((await book.tokens.list({ tenant: "a" })).items), [made[3]?.id]);
      assert.ok(!JSON.stringify(await book.tokens.list({ all: true })).includes("dbk_"));
    });

    test("a link logs in one browser, once and in time", async (t) => {
      const clock = manualClock();
      const { book } = await openTest(t, backend, { clock });
      const [link, late] = [await book.access.link(), await book.access.link({ role: "read", tenant: "acme" })];

      const tries = await Promise.all(Array.from({ length: 8 }, () => book.access.login(link)));
      clock.step("15m");
      const tooLate = await book.access.login(late);

      const [login, ...more] = tries.filter((each) => each !== null);
      assert.deepEqual(more, []);
      assert.deepEqual(login?.caller, {
        tokenId: null,
        name: "one-time link",
        tenant: null,
        role: "admin",
        queues: null,
        names: null,
      });
      assert.deepEqual(await book.access.identifyCookie(login?.cookie ?? ""), login?.caller);
      assert.equal(tooLate, null);
      assert.equal(await book.access.identify(link), null);
      clock.step(limits.linkLoginMs);
      assert.equal(await book.access.identifyCookie(login?.cookie ?? ""), null);
    });

    test("a logout ends that login alone", async (t) => {
      const { book, url } = await openTest(t, backend);
      const { book: other } = await openTest(t, backend, { url });
      const { secret } = await book.tokens.create({ role: "read", tenant: null });
      const [one, two] = [await book.access.login(secret), await book.access.login(secret)];
      assert.ok(await other.access.identifyCookie(one?.cookie ?? ""));

      await book.access.logout(one?.cookie ?? "");
      await book.access.logout("nonsense");

      assert.equal(await book.access.identifyCookie(one?.cookie ?? ""), null);
      assert.equal((await book.access.identifyCookie(two?.cookie ?? ""))?.role, "read");
      await until("the other process hears", async () =>
        (await other.access.identifyCookie(one?.cookie ?? "")) === null ? true : undefined,
      );
    });

    test("nothing in the book tells a secret", async (t) => {
      const { book, url } = await openTest(t, backend);
      const caller = { tokenId: "t", name: "n", tenant: "a", role: "admin", queues: null, names: null } as const;
      const { secret } = await book.tokens.create({ role: "admin", tenant: null });
      const link = await book.access.link();
      const cookie = (await book.access.login(secret))?.cookie ?? "";
      await book.access.identify(secret);
      const canary = "kanarie-7Hq2";
      const input = {
        token: secret,
        password: canary,
        headers: { "x-mine": canary },
        body: canary,
        url: `https://u:${canary}@example.com/a?key=${canary}`,
        list: [{ deep: { apiKey: canary } }, `Bearer ${canary}`, `see ${cookie} and ${link}`],
        params: { note: "kept" },
      };
      const entry = { caller, tenant: "a", verb: "tokens create", subject: null, from: "127.0.0.1", requestId: "r" };
      await book.access.note({ ...entry, input });
      const key = { tenant: "a", tokenId: "t", key: "k", route: "POST /tokens", bodyHash: "h" };
      const begun = await book.access.replies.begin(key);
      const reply = { status: 200, headers: {}, body: JSON.stringify({ secret, id: "x" }) };
      await book.access.replies.finish(begun.state === "fresh" ? begun.id : "", reply);
      const of = { verb: "v", tenant: null, caller, input };
      const operation = await book.access.operations.start(of, async () => ({ secret }));
      await until("it has ended", async () =>
        (await book.operations.get(operation.id)).status === "completed" ? true : undefined,
      );

      const secrets = [secret, link, cookie].flatMap((each) => [each, each.slice(-43), each.slice(-30)]);
      const everywhere = backend === "sqlite" ? readFileSync(url, "latin1") + readFileSync(`${url}-wal`, "latin1") : "";
      const text = everywhere + (await allText(book, backend));
      for (const each of [...secrets, canary]) assert.ok(!text.includes(each), each);
      assert.ok(text.includes("kept"));
    });

    test("what is wrong with a token that is asked for is said", async (t) => {
      const { book } = await openTest(t, backend);
      const wrong: [unknown, RegExp][] = [
        [{ tenant: null }, /role is undefined: give one of read, operate, admin, worker/],
        [{ role: "root", tenant: null }, /role is "root"/],
        [{ role: "read" }, /tenant is missing/],
        [{ role: "read", tenant: "a b" }, /tenant "a b" must be/],
        [{ role: "read", tenant: null, expires: 0 }, /expires is 0; it must be at least 1ms/],
        [{ role: "read", tenant: null, expires: "soon" }, /expires is "soon"/],
        [{ role: "admin", tenant: null, queues: ["a"] }, /for tokens of workers/],
        [{ role: "worker", tenant: null, queues: [] }, /the number of queues 0/],
        [{ role: "worker", tenant: null, names: "send" }, /names is "send": give a list/],
        [{ role: "read", tenant: null, name: "a\nb" }, /control character/],
        [{ role: "read", tenant: null, expire: "1d" }, /did you mean "?expires/],
      ];

      for (const [options, message] of wrong) {
        await assert.rejects(book.tokens.create(options as never), { code: "invalid", message });
      }
    });

    test("a tenant's handle has neither tokens nor access", async (t) => {
      const { book } = await openTest(t, backend);
      const mine = book.tenant("mine");

      assert.throws(() => mine.access, { code: "forbidden", message: /access is about all tenants/ });
      await assert.rejects(mine.tokens.create({ role: "read", tenant: "mine" }), { code: "forbidden" });
      await assert.rejects(mine.tokens.list(), { code: "forbidden" });
      await assert.rejects(mine.tokens.revoke("x"), { code: "forbidden" });
    });
  });
}
