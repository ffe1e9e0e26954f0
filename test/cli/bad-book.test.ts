import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { test } from "node:test";
import { Client } from "pg";
import { errorCodes, open, type ErrorCode } from "../../src/index.ts";
import { migrations } from "../../src/open/migrations.ts";
import { openStore } from "../../src/storage/open-store.ts";
import { backends, testFolder, testUrl } from "../support/open-test.ts";
import { parsed, parsedError, runCli } from "./run-cli.ts";

const looking = [["info"], ["sessions"], ["backup", "copy.db"], ["doctor"]];
const everyCommand = [...looking, ["migrate"], ["migrate", "--dry-run"]];

type Bad = {
  what: string;
  /** Makes the bad thing in `folder` and names it. */
  make(folder: string): Promise<string> | string;
  code: ErrorCode;
  says: RegExp;
  commands?: string[][];
};

const bad: readonly Bad[] = [
  {
    what: "a file that is not a database",
    make: (folder) => written(join(folder, "letter.txt"), "Dear diary, this is no database at all.\n"),
    code: "incompatible",
    says: /letter\.txt is not a SQLite database/,
  },
  {
    what: "another program's database",
    make: (folder) => database(join(folder, "other.db"), "create table photo (id integer primary key)"),
    code: "incompatible",
    says: /other\.db is another program's database/,
  },
  {
    what: "a newer book",
    make: async (folder) => {
      await (await open(join(folder, "newer.db"), { attach: false })).close();
      return database(join(folder, "newer.db"), "pragma user_version = 999999");
    },
    code: "incompatible",
    says: /schema version 999999 and this daybook knows up to \d+: install a newer daybook/,
  },
  {
    what: "a missing folder",
    make: (folder) => join(folder, "nowhere", "shop.db"),
    code: "unavailable",
    says: /the folder .*nowhere does not exist: create it first/,
  },
  {
    // Nothing can be made in /proc, by root neither. Where there is none, it is a missing folder.
    what: "a folder that may not be written",
    make: () => "/proc/shop.db",
    code: "unavailable",
    says: /check that the folder exists and may be written|create it first/,
    commands: [["migrate"]],
  },
  {
    what: "a folder",
    make: (folder) => {
      mkdirSync(join(folder, "inner"));
      return join(folder, "inner");
    },
    code: "invalid",
    says: /inner is a folder: name a file inside it/,
  },
  {
    what: "a book that is not there",
    make: (folder) => join(folder, "missing.db"),
    code: "not_found",
    says: /there is no book at .*missing\.db: "daybook migrate" makes one/,
    commands: looking,
  },
  {
    what: "an empty file",
    make: (folder) => written(join(folder, "empty.db"), ""),
    code: "not_found",
    says: /there is no book at .*empty\.db/,
    commands: looking,
  },
  {
    what: "a kind of URL that is not supported",
    make: () => "mysql://localhost/shop",
    code: "invalid",
    says: /"mysql:\/\/" is not supported: give a file path/,
  },
  {
    what: "a book in memory",
    make: () => ":memory:",
    code: "invalid",
    says: /":memory:" is a book that ends with its program.*name a file/,
  },
  {
    what: "a PostgreSQL server that is not there",
    make: () => "postgres://ada:secret-word@127.0.0.1:1/shop",
    code: "unavailable",
    says: /ECONNREFUSED.*postgres:\/\/ada:.*@127\.0\.0\.1:1\/shop.*is the server running there\?/,
  },
];

for (const { what, make, code, says, commands = everyCommand } of bad) {
  test(`${what} is refused by every command, and nothing is created or changed`, async (t) => {
    const folder = testFolder(t);
    const url = await make(folder);
    const before = contents(folder);

    const ends = await Promise.all(commands.map((args) => runCli([...args, "--book", url, "--json"], { cwd: folder })));

    for (const [index, ended] of ends.entries()) {
      const error = parsedError(ended.stderr);
      const where = commands[index]?.join(" ") ?? "";
      assert.deepEqual([error.code, ended.code, ended.stdout], [code, errorCodes[code].exit, ""], where);
      assert.match(error.message, says, where);
      assert.ok(!ended.stderr.includes("secret-word"), "a password was shown");
    }
    assert.deepEqual(contents(folder), before);
  });
}

test("a book that is not there yet on PostgreSQL is not made by who only looks", async (t) => {
  const url = await testUrl(t, "postgres");

  const ends = await Promise.all(looking.map((args) => runCli([...args, "--book", url, "--json"])));

  for (const ended of ends) {
    assert.deepEqual([parsedError(ended.stderr).code, ended.code], ["not_found", errorCodes.not_found.exit]);
    assert.match(parsedError(ended.stderr).message, /"daybook migrate" makes one/);
  }
  assert.equal(await schemas(url), 0);
});

for (const backend of backends) {
  test(`${backend}: a book that is not up to date is left as it is by who only looks, and migrate names what it lacks`, async (t) => {
    const url = await testUrl(t, backend);
    await (await openStore(url, migrations.slice(0, 1))).close();

    const ends = await Promise.all(looking.map((args) => runCli([...args, "--book", url, "--json"])));
    const dry = await runCli(["migrate", "--dry-run", "--book", url, "--json"]);

    for (const ended of ends) {
      assert.equal(ended.code, errorCodes.incompatible.exit);
      assert.match(parsedError(ended.stderr).message, /run "daybook migrate" first/);
    }
    const pending = migrations.slice(1).map(({ number, name }) => ({ number, name }));
    assert.deepEqual(parsed(dry.stdout), { dryRun: true, created: false, applied: [], pending });
  });
}

test("a newer book on PostgreSQL is refused by every command", async (t) => {
  const url = await testUrl(t, "postgres");
  await (await open(url, { attach: false })).close();
  await query(url, "insert into daybook.daybook_migration values (999999, 'tomorrow', 'hash', 0)");

  const ends = await Promise.all(everyCommand.map((args) => runCli([...args, "--book", url, "--json"])));

  for (const ended of ends) {
    assert.equal(ended.code, errorCodes.incompatible.exit);
    assert.match(parsedError(ended.stderr).message, /schema version 999999/);
  }
});

test("a database, a user or a schema that is not the book's on PostgreSQL is a clear error", async (t) => {
  const url = await testUrl(t, "postgres");
  await query(url, "create schema theirs; create table theirs.photo (id bigint)");
  const other = (change: (url: URL) => void): string => {
    const changed = new URL(url);
    change(changed);
    return changed.href;
  };

  const database = await runCli(["migrate", "--json", "--book", other((each) => (each.pathname = "/no_such_db"))]);
  const user = await runCli(["migrate", "--json", "--book", other((each) => (each.username = "nobody_here"))]);
  const schema = await runCli(["migrate", "--json", "--book", url, "--schema", "theirs"]);

  assert.deepEqual([database.code, parsedError(database.stderr).code], [4, "not_found"]);
  assert.match(parsedError(database.stderr).message, /create the database first/);
  assert.deepEqual([user.code, parsedError(user.stderr).code], [3, "unauthorized"]);
  assert.deepEqual([schema.code, parsedError(schema.stderr).code], [9, "incompatible"]);
  assert.match(parsedError(schema.stderr).message, /the schema "theirs" holds tables of another program/);
  assert.equal(await schemas(url), 0);
});

test("a schema is not given for a file", async (t) => {
  const folder = testFolder(t);

  const ended = await runCli(["migrate", "--json", "--book", join(folder, "shop.db"), "--schema", "a"]);

  assert.deepEqual([ended.code, parsedError(ended.stderr).code], [2, "invalid"]);
  assert.match(parsedError(ended.stderr).message, /"schema" is for books on PostgreSQL/);
  assert.deepEqual(readdirSync(folder), []);
});

for (const schema of ["UPPER", 'a "b"']) {
  test(`a schema called ${schema} holds a book like any other`, async (t) => {
    const url = await testUrl(t, "postgres");

    const made = await runCli(["migrate", "--json", "--book", url, "--schema", schema]);
    const info = await runCli(["info", "--json", "--book", url, "--schema", schema]);
    const doctor = await runCli(["doctor", "--json", "--book", url, "--schema", schema]);

    assert.deepEqual([made.code, parsed(made.stdout)["created"]], [0, true], made.stderr);
    assert.deepEqual([info.code, parsed(info.stdout)["schema"]], [0, schema], info.stderr);
    assert.ok(Number(parsed(info.stdout)["bytes"]) > 0);
    assert.deepEqual([doctor.code, parsed(doctor.stdout)["findings"]], [0, []], doctor.stderr);
  });
}

function written(path: string, text: string): string {
  writeFileSync(path, text);
  return path;
}

function database(path: string, statement: string): string {
  const db = new DatabaseSync(path);
  db.exec(statement);
  db.close();
  return path;
}

/** Every file with a hash of its bytes, and every folder. */
function contents(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: "utf8" })
    .sort()
    .map((name) => {
      const path = join(folder, name);
      if (statSync(path).isDirectory()) return `${name}/`;
      return `${name} ${createHash("sha256").update(readFileSync(path)).digest("hex")}`;
    });
}

async function query(url: string, text: string): Promise<unknown[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

/** How many schemas named like a book's there are. */
async function schemas(url: string): Promise<number> {
  return (await query(url, "select 1 from pg_namespace where nspname = 'daybook'")).length;
}
