// What cannot be opened is refused with a code and advice, and nothing is created or changed.
import assert from "node:assert/strict";
import { hash } from "node:crypto";
import { once } from "node:events";
import { chmodSync, copyFileSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { describe, test, type TestContext } from "node:test";
import { Client } from "pg";
import { open, type ErrorCode, type OpenOptions } from "../../src/index.ts";
import { checkSqliteVersion } from "../../src/storage/sqlite/connection.ts";
import { cleanup, testFolder, testUrl } from "../support/open-test.ts";

/** Every file of the folder with a mark of its bytes. The memory that those who have a file open share is no content. */
function contents(folder: string): Record<string, string> {
  const entries = readdirSync(folder, { withFileTypes: true, recursive: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    const isContent = entry.isFile() && !entry.name.endsWith("-shm");
    return [path, isContent ? hash("sha256", readFileSync(path)) : "no content"];
  });
  return Object.fromEntries(entries) as Record<string, string>;
}

type Refusal = { readonly code: ErrorCode; readonly message: RegExp };

async function assertRefused(folder: string, url: string, refusal: Refusal, options: OpenOptions = {}): Promise<void> {
  const before = contents(folder);

  await assert.rejects(open(url, options), refusal);

  assert.deepEqual(contents(folder), before, "something was created or changed");
}

/** Makes a book at the path, closed and complete in one file. */
async function makeBook(path: string): Promise<void> {
  const book = await open(path, { attach: false });
  await book.write((tx) => tx.sql`create table note (body text)`);
  await book.close();
}

function change(path: string, script: string): void {
  const db = new DatabaseSync(path);
  db.exec(script);
  db.close();
}

describe("a file that is no book", () => {
  test("a text file is refused", async (t) => {
    const folder = testFolder(t);
    writeFileSync(join(folder, "notes.txt"), "Dear diary,\n".repeat(1000));
    writeFileSync(join(folder, "short.txt"), "x");

    for (const name of ["notes.txt", "short.txt"]) {
      await assertRefused(folder, join(folder, name), { code: "incompatible", message: /not a SQLite database/ });
    }
  });

  test("a file that only begins like a database is refused", async (t) => {
    const folder = testFolder(t);
    writeFileSync(join(folder, "fake.db"), Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(5000, 7)]));

    await assertRefused(folder, join(folder, "fake.db"), { code: "incompatible", message: /SQLite (?:26|11)/ });
  });

  for (const mode of ["delete", "wal"]) {
    test(`another program's database is refused, also in journal mode ${mode}`, async (t) => {
      const folder = testFolder(t);
      const path = join(folder, "other.db");
      change(path, `pragma journal_mode = ${mode}; create table song (title text); insert into song values ('a')`);

      await assertRefused(folder, path, { code: "incompatible", message: /another program's database: name another/ });
    });

    test(`a database with another program's application id is refused even without tables, in mode ${mode}`, async (t) => {
      const folder = testFolder(t);
      const path = join(folder, "other.db");
      change(path, `pragma journal_mode = ${mode}; pragma application_id = 42`);

      await assertRefused(folder, path, { code: "incompatible", message: /another program's database/ });
    });

    test(`a newer book is refused, also in journal mode ${mode}`, async (t) => {
      const folder = testFolder(t);
      const path = join(folder, "book.db");
      await makeBook(path);
      change(path, `pragma user_version = 9999; pragma journal_mode = ${mode}`);

      await assertRefused(folder, path, { code: "incompatible", message: /schema version 9999 .*install a newer/ });
    });
  }

  test("another program's database that is in use just now is refused", async (t) => {
    const folder = testFolder(t);
    const path = join(folder, "other.db");
    const other = new DatabaseSync(path);
    cleanup(t, () => other.close());
    other.exec("pragma journal_mode = wal; create table song (title text); insert into song values ('a')");

    await assertRefused(folder, path, { code: "incompatible", message: /another program's database/ });
  });

  test("another program's database that was copied with its WAL is refused", async (t) => {
    const folder = testFolder(t);
    const other = new DatabaseSync(join(folder, "other.db"));
    cleanup(t, () => other.close());
    other.exec("pragma application_id = 42; create table song (title text); pragma journal_mode = wal");
    other.exec("insert into song values ('a')");
    for (const end of ["", "-wal"]) copyFileSync(join(folder, `other.db${end}`), join(folder, `copy.db${end}`));

    await assertRefused(folder, join(folder, "copy.db"), { code: "incompatible", message: /another program's/ });
  });

  test("an older book is refused without permission to migrate, and a missing one is not made", async (t) => {
    const folder = testFolder(t);
    const path = join(folder, "book.db");
    await makeBook(path);
    change(path, "pragma user_version = 0; pragma journal_mode = delete");
    const options: OpenOptions = { migrate: false };

    await assertRefused(folder, path, { code: "incompatible", message: /run "daybook migrate" first/ }, options);
    await assertRefused(folder, join(folder, "none.db"), { code: "not_found", message: /there is no book/ }, options);
  });

  test("an empty file and an empty database become books", async (t) => {
    const folder = testFolder(t);
    writeFileSync(join(folder, "empty.db"), "");
    change(join(folder, "bare.db"), "pragma journal_mode = wal; create table a (b); drop table a");

    for (const name of ["empty.db", "bare.db"]) {
      const book = await open(join(folder, name), { attach: false });
      assert.equal((await book.info()).dialect, "sqlite");
      await book.close();
    }
  });
});

describe("a place that cannot hold a book", () => {
  test("a folder is refused", async (t) => {
    const folder = testFolder(t);
    mkdirSync(join(folder, "shop"));

    await assertRefused(folder, join(folder, "shop"), { code: "invalid", message: /is a folder: name a file inside/ });
    await assertRefused(folder, "/dev/null", { code: "invalid", message: /is not a file/ });
  });

  test("a missing folder is refused and not made", async (t) => {
    const folder = testFolder(t);
    writeFileSync(join(folder, "file"), "x");
    symlinkSync(join(folder, "nowhere"), join(folder, "dangling"));

    for (const path of ["missing/shop.db", "missing/deeper/shop.db", "file/shop.db", "dangling/shop.db"]) {
      await assertRefused(folder, join(folder, path), { code: "unavailable", message: /does not exist: create it/ });
    }
  });

  test("a folder that may not be written is refused", async (t) => {
    const folder = testFolder(t);
    makeReadable(folder);
    await makeBook(join(folder, "book.db"));
    chmodSync(join(folder, "book.db"), 0o444);
    chmodSync(folder, 0o555);
    cleanup(t, () => chmodSync(folder, 0o755));
    const before = contents(folder);

    await asNobody(async () => {
      await assert.rejects(open(join(folder, "new.db")), { code: "unavailable", message: /may be written/ });
      await assert.rejects(open(join(folder, "book.db")), (error: { code: string; message: string }) => {
        assert.match(error.code, /^(?:forbidden|unavailable)$/);
        assert.match(error.message, /permissions|may be written/);
        return true;
      });
    });

    assert.deepEqual(contents(folder), before);
  });

  test("a folder and a file that may not be read are refused", async (t) => {
    const folder = testFolder(t);
    makeReadable(folder);
    mkdirSync(join(folder, "closed"), { mode: 0o700 });
    await makeBook(join(folder, "closed", "book.db"));
    await makeBook(join(folder, "book.db"));
    chmodSync(join(folder, "book.db"), 0o000);

    await asNobody(async () => {
      await assert.rejects(open(join(folder, "closed", "book.db")), { code: "unavailable", message: /permissions/ });
      await assert.rejects(open(join(folder, "book.db")), { code: "unavailable", message: /cannot be read/ });
    });
  });
});

describe("a SQLite that is too old", () => {
  test("versions below 3.51.3 are refused, that and newer ones are not", () => {
    for (const version of ["3.51.2", "3.50.9", "3.9.99", "2.8.17", "0", "3"]) {
      assert.throws(() => checkSqliteVersion(version), {
        code: "incompatible",
        message: /needs 3\.51\.3 or newer, which comes with Node\.js 24\.15/,
      });
    }
    for (const version of ["3.51.3", "3.51.10", "3.52.0", "3.100.0", "4.0.0"]) checkSqliteVersion(version);
  });
});

describe("an option or a URL that nobody knows", () => {
  const wrong: [url: string, options: Record<string, unknown>, message: RegExp][] = [
    ["shop.db", { durabilty: "full" }, /unknown option "durabilty" for open: did you mean "durability"\?/],
    ["shop.db", { Schema: "a" }, /did you mean "schema"\?/],
    ["shop.db", { colour: "red" }, /unknown option "colour" for open\. Known: tenant, durability/],
    ["shop.db", { durability: "none" }, /durability "none" is not known: "full" or "normal"/],
    ["shop.db", { connections: 1 }, /connections 1 is not a whole number from 2 to 100/],
    ["shop.db", { tenant: "a b" }, /tenant "a b"/],
    ["", {}, /names no book/],
    ["shop.db", { schema: "a" }, /"schema" is for books on PostgreSQL, and this one is a file: leave it out/],
    ["shop.db", { connections: 4 }, /"connections" is for books on PostgreSQL/],
    ["postgres://127.0.0.1:1/shop", { durability: "full" }, /"durability" is for books in a file, and this one is on/],
    [":memory:", { schema: "a" }, /"schema" is for books on PostgreSQL/],
    ["mysql://host/db", {}, /"mysql:\/\/" is not supported/],
    ["sqlite:shop.db", {}, /"sqlite:" is not supported: give a file path, .* with its folder: \.\//],
    ["file:shop.db", {}, /"file:" is not supported: give a file path, file:\/\/\//],
    ["file://elsewhere/shop.db", {}, /names no file of this machine/],
    ["postgres://me:12#canary@host/db", {}, /cannot be read: .*with %23, %3F and %2F for #, \? and \//],
    ["postgres://me:12?canary@host/db", {}, /cannot be read/],
    ["postgres://me:12/canary@host/db", {}, /cannot be read/],
    ["postgres://me@127.0.0.1:1/db?sslrootcert=/nope", {}, /no such file.*\/nope.*check the file that the URL names/],
    ["postgres://host:port/db", {}, /URL cannot be read: write postgres:\/\/user/],
  ];
  for (const [url, options, message] of wrong) {
    test(`${JSON.stringify(url)} with ${JSON.stringify(options)} is refused`, async (t) => {
      const folder = testFolder(t);

      const path = url === "shop.db" ? join(folder, url) : url;
      await assertRefused(folder, path, { code: "invalid", message }, options);
      await assert.rejects(open(path, options), (error: Error) => !error.message.includes("canary"));
    });
  }
});

describe("a PostgreSQL that cannot be used", () => {
  test("a server that is not there is unavailable, and its password is not shown", async () => {
    const url = "postgres://me:secret@127.0.0.1:1/shop?password=secret";

    await assert.rejects(open(url), (error: { code: string; message: string; cause?: unknown }) => {
      assert.equal(error.code, "unavailable");
      assert.match(error.message, /ECONNREFUSED.*is the server running there\?/);
      assert.doesNotMatch(error.message, /secret/);
      return true;
    });
  });

  test("a wrong password is unauthorized", async (t) => {
    const url = await refusingServer(t, "28P01", 'password authentication failed for user "me"');

    await assert.rejects(open(url), { code: "unauthorized", message: /28P01.*check the user and the password/ });
  });

  test("a server with too many connections is unavailable", async (t) => {
    const url = await refusingServer(t, "53300", "sorry, too many clients already");

    await assert.rejects(open(url), { code: "unavailable", message: /too many clients/ });
  });

  test("a database that does not exist is not found", async (t) => {
    const url = new URL(await testUrl(t, "postgres"));
    url.pathname = "/nowhere";

    await assert.rejects(open(url.href), {
      code: "not_found",
      message: /"nowhere" does not exist.*create the database/,
    });
  });

  const others: [what: string, script: string][] = [
    ["tables of another program", "create schema daybook; create table daybook.song (title text)"],
    ["a migration table of another program", "create schema daybook; create table daybook.daybook_migration (id text)"],
    ["a view of another program", "create schema daybook; create view daybook.song as select 1 as title"],
  ];
  for (const [what, script] of others) {
    test(`a schema with ${what} is refused and not changed`, async (t) => {
      const url = await testUrl(t, "postgres");
      const client = new Client({ connectionString: url });
      await client.connect();
      cleanup(t, () => client.end());
      await client.query(script);
      const before = await objects(client);

      await assert.rejects(open(url), {
        code: "incompatible",
        message: /tables of another program: choose another with the option "schema"/,
      });

      assert.deepEqual(await objects(client), before);
    });
  }

  test("a user who may not make the schema is refused", async (t) => {
    const url = new URL(await testUrl(t, "postgres"));
    const client = new Client({ connectionString: url.href });
    await client.connect();
    cleanup(t, () => client.end());
    const role = `guest_${url.pathname.slice(1)}`;
    await client.query(`create role ${role} login`);
    cleanup(t, () => client.query(`drop role ${role}`));
    url.username = role;
    const before = await objects(client);

    await assert.rejects(open(url.href), { code: "forbidden", message: /permission denied.*grant the user the right/ });

    assert.deepEqual(await objects(client), before);
  });
});

async function objects(client: Client): Promise<unknown[]> {
  const { rows } = await client.query<object>(
    `select nspname, relname from pg_namespace left join pg_class on relnamespace = pg_namespace.oid
      where nspname not like 'pg_%' and nspname <> 'information_schema' order by 1, 2`,
  );
  return rows;
}

/** A server that answers whoever connects with one error and hangs up. */
async function refusingServer(t: TestContext, code: string, message: string): Promise<string> {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const length = Buffer.alloc(4);
  length.writeInt32BE(fields.length + 4);
  const server = createServer((socket) => {
    socket.on("error", () => undefined);
    socket.once("data", () => socket.end(Buffer.concat([Buffer.from("E"), length, fields])));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  cleanup(t, () => server.close());
  return `postgres://me:wrong@127.0.0.1:${(server.address() as AddressInfo).port}/shop`;
}

/** Root may do everything, so for a while this process is nobody; other users are already bound by permissions. */
async function asNobody(work: () => Promise<void>): Promise<void> {
  if (process.geteuid?.() !== 0) return work();
  process.seteuid?.(65_534);
  try {
    await work();
  } finally {
    process.seteuid?.(0);
  }
}

/** The temporary folder of a test is private to its maker. */
function makeReadable(folder: string): void {
  chmodSync(folder, 0o755);
}
