import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { repoFiles } from "./tidy/files.ts";
import { tidy } from "./tidy/rules.ts";

const root = join(import.meta.dirname, "..");

/** The complaints about one planted file, as text. */
function complaints(path: string, text = ""): string[] {
  return tidy([{ path, text }]).map(({ line, message }) => `${line}: ${message}`);
}

function assertRefused(path: string, text: string, expected: RegExp): void {
  const found = complaints(path, text);
  assert.equal(
    found.length,
    1,
    `expected one complaint about ${path} with ${text.slice(0, 80)}, got ${found.join("; ")}`,
  );
  assert.match(found[0] ?? "", expected);
}

function assertAccepted(path: string, text: string): void {
  assert.deepEqual(complaints(path, text), []);
}

test("the repo keeps its own rules", () => {
  const files = repoFiles(root);

  const found = tidy(files).map(({ path, line, message }) => `${path}:${line} ${message}`);

  assert.ok(
    files.some(({ path }) => path === "test/tidy.test.ts"),
    "the list of files must hold this file",
  );
  assert.ok(found.length === 0, `\n${found.join("\n")}\n`);
});

test("a room may not import a room above it", () => {
  assertRefused("src/storage/write.ts", 'import { claim } from "../jobs/claim.ts";', /jobs stands above storage; move/);
  assertRefused("src/core/clock.ts", 'import type { Book } from "../open.ts";', /front door stands above core/);
  assertRefused("src/jobs/claim.ts", 'const { open } = await import("../index.ts");', /front door stands above jobs/);
  assertRefused("src/jobs/claim.ts", 'import { open } from "daybook";', /front door stands above jobs/);
  assertRefused("src/storage/a.ts", 'new Worker(new URL("../cli/a-thread.ts", import.meta.url));', /cli stands above/);
  assertRefused("src/open.ts", 'import { main } from "./cli/main.ts";', /cli stands above front door/);
  assertRefused("src/storage/a.ts", 'type Job = import("../jobs/job.ts").Job;', /jobs stands above storage/);
});

test("a room may not import a room on its own row", () => {
  assertRefused(
    "src/records/put.ts",
    '\nimport { log } from "../telemetry/log.ts";',
    /^2: .*records and telemetry stand on one row/,
  );
  assertRefused("src/events/publish.ts", 'import { fire } from "../schedules/fire.ts";', /stand on one row/);
  assertRefused("src/server/page.ts", 'import { page } from "../dashboard/page.ts";', /stand on one row/);
});

test("a room may import itself and the rooms below it", () => {
  assertAccepted(
    "src/storage/sqlite/writer.ts",
    'import { a } from "../sql.ts"; import { b } from "../../core/clock.ts";',
  );
  assertAccepted("src/events/deliver.ts", 'import { enqueue } from "../jobs/enqueue.ts";');
  assertAccepted("src/open.ts", 'import { connect } from "./storage/connect.ts"; import { Book } from "./book.ts";');
  assertAccepted("src/server/jobs.ts", 'import { list } from "../jobs/list.ts"; import { open } from "../open.ts";');
  assertAccepted("src/cli/main.ts", 'import manifest from "../../package.json" with { type: "json" };');
  assertAccepted("src/core/error.ts", 'import { inspect } from "node:util"; import { uuidv7 } from "uuidv7";');
});

test("an import inside a comment or a string does not count", () => {
  assertAccepted(
    "src/storage/write.ts",
    '// import { claim } from "../jobs/claim.ts";\nconst a = `from "../jobs/claim.ts"`;',
  );
  assertAccepted("src/storage/quote.ts", 'const quote = /["\'`]/; const a = 4 / 2; // from "../jobs/claim.ts"');
});

test("the product imports nothing from outside src", () => {
  assertRefused("src/storage/write.ts", 'import { start } from "../../test/postgres.ts";', /may import only src/);
  assertAccepted("test/storage/write.test.ts", 'import { start } from "../postgres.ts";');
});

test("a folder in src that is not a room is refused", () => {
  assertRefused("src/plugins/load.ts", "export const load = 1;", /src\/plugins is not a room/);
  assertAccepted("src/apps/load.ts", "export const load = 1;");
});

test("one file moves jobs between states", () => {
  const moves = [
    "update daybook_line as line set run_id = v.run_id,\n status = 'running' from v where line.seq = v.seq",
    "update daybook_line set position = (select max(position) from daybook_line where seq = 2), status = 'queued'",
    "update daybook_line set (status, position) = ('queued', 1) where seq = 1",
    "insert into daybook_line (seq, status) values (1, 'queued')",
    "delete from\n  daybook_line where seq = 1",
  ];
  for (const each of moves) {
    assertRefused("src/jobs/turn.ts", `\nconst taken = sql\`${each}\`;`, /^2: .*only src\/jobs\/state\.ts moves jobs/);
    assertAccepted("src/jobs/state.ts", `const taken = sql\`${each}\`;`);
  }
  assertRefused(
    "src/jobs/turn.ts",
    'tx.run(insertInto("daybook_line", columns, rows));',
    /only src\/jobs\/state\.ts moves/,
  );
  assertAccepted("src/jobs/a.ts", "sql`update daybook_line set position = 1 where seq = 2 and status = 'queued'`;");
  assertAccepted("src/jobs/a.ts", "sql`update daybook_line set position = (select 1 where status = 'queued')`;");
});

test("a file of src has fewer than 350 lines, a test fewer than 600", () => {
  const lines = (count: number): string => "export const a = 1;\n".repeat(count);

  assertRefused("src/jobs/claim.ts", lines(350), /has 350 lines and must stay below 350; split it/);
  assertRefused("test/jobs/claim.test.ts", lines(600), /has 600 lines and must stay below 600/);
  assertAccepted("src/jobs/claim.ts", lines(349));
  assertAccepted("test/jobs/claim.test.ts", lines(599));
  assertAccepted("docs/long.md", lines(700));
});

test("a file name that says nothing is refused", () => {
  const banned = ["utils", "util", "helpers", "helper", "common", "types", "interfaces", "manager", "service", "misc"];

  for (const name of [...banned, "job-helpers", "session-manager"]) {
    assertRefused(`src/jobs/${name}.ts`, "", /says nothing; name it by the one noun or verb/);
  }
  assertRefused("test/helpers/open.ts", "", /"helpers" says nothing/);
  assertAccepted("src/jobs/claim.ts", "");
  assertAccepted("src/calls/service-call.ts", "");
});

test("a file name that is not in kebab-case is refused", () => {
  assertRefused("src/jobs/claimJob.ts", "", /"claimJob.ts" is not in kebab-case/);
  assertRefused("test/Claim.test.ts", "", /kebab-case/);
  assertRefused("src/storage/write_queue.ts", "", /kebab-case/);
  assertAccepted("src/storage/write-queue.ts", "");
  assertAccepted("test/storage/write-queue.test.ts", "");
  assertAccepted("schema/sqlite.sql", "");
});

test("only core reads the clock, waits and rolls the dice", () => {
  const strays = [
    "const now = Date.now();",
    "const now = Date.now;",
    "const now = new Date();",
    "const now = new Date;",
    "const now = Temporal.Now.instant();",
    "const start = performance.now();",
    "const start = process.hrtime.bigint();",
    "const dice = Math.random();",
    "setTimeout(run, 5);",
    "globalThis.setInterval(run, 5);",
    "setImmediate(run);",
    "const id = crypto.randomUUID();",
    "const id = randomBytes(16);",
    'import { setTimeout as sleep } from "node:timers/promises";',
    "const text = `at ${Date.now()}`;",
  ];

  for (const text of strays) {
    assertRefused("src/jobs/claim.ts", text, /src\/core/);
    assertAccepted("src/core/clock.ts", text);
    assertAccepted("test/jobs/claim.test.ts", text);
  }
});

test("a given time, a comment and a string are not the clock", () => {
  assertAccepted("src/jobs/claim.ts", "const at = new Date(row.created_at); // not Date.now()");
  assertAccepted("src/jobs/claim.ts", 'const text = "setTimeout( and Math.random(";\n/* new Date() */');
  assertAccepted("src/jobs/claim.ts", "socket.setTimeout(5); clock.now();");
  assertAccepted("src/jobs/claim.ts", "const dated = /Date.now()/.test(text); const half = a / b; const c = d / e;");
});

test("a file that only passes names on is refused", () => {
  const barrel = 'export * from "./claim.ts";\nexport { run, type Run } from "./run.ts"; // all of it\n';
  const disguised =
    'import { claim } from "./claim.ts";\nimport type { Run } from "./run.ts";\n\nexport { claim };\nexport type { Run };\n';

  assertRefused("src/jobs/index.ts", barrel, /only passes names on; import from the file that defines them/);
  assertRefused("src/jobs/index.ts", disguised, /only passes names on/);
  assertAccepted("src/index.ts", barrel);
  assertAccepted("src/jobs/claim.ts", 'export { limit } from "./limit.ts";\nexport function claim(): void {}\n');
  assertAccepted("src/jobs/fill.ts", 'import "./polyfill.ts";\n');
});

test("any, silenced types and unfinished work are refused in src", () => {
  assertRefused("src/jobs/claim.ts", "const a = b as any;", /"as any": say the type/);
  assertRefused("src/jobs/claim.ts", "function f(a: any) {}", /say the type/);
  assertRefused("src/jobs/claim.ts", "const a = f<any, string>();", /say the type/);
  assertRefused("src/jobs/claim.ts", "// @ts-ignore\nf(1);", /@ts-ignore: mend the type/);
  assertRefused("src/jobs/claim.ts", "\n\n// TODO: limits", /^3: TODO: do it now/);
  assertRefused("src/jobs/claim.ts", "/* FIXME */", /FIXME/);
  assertAccepted("src/jobs/claim.ts", "// as any\nconst a: unknown = b; const anything: anyone = c ? all(1) : any(2);");
});

test("a room may not write into the tables of another", () => {
  const owner = { path: "src/events/migrations.ts", text: "sql`create table daybook_event (seq integer)`;" };
  const complaintsAbout = (path: string, text: string): string[] =>
    tidy([owner, { path, text }]).map(({ message }) => message);

  for (const statement of [
    "insert into daybook_event (a)",
    "insert or ignore into daybook_event (a)",
    "update daybook_event set a = 1",
    "UPDATE daybook_event SET a = 1",
    "delete from\n  daybook_event",
  ]) {
    const found = complaintsAbout("src/jobs/claim.ts", `tx.run(sql\`${statement}\`);`);
    assert.match(found.join(), /daybook_event belongs to src\/events; call a function of that room/);
    assert.deepEqual(complaintsAbout("src/events/publish.ts", `tx.run(sql\`${statement}\`);`), []);
  }
  const built = complaintsAbout("src/jobs/claim.ts", 'tx.run(insertInto("daybook_event", { a: "integer" }, rows));');
  assert.match(built.join(), /daybook_event belongs to src\/events/);
  assert.deepEqual(complaintsAbout("src/jobs/claim.ts", "tx.all(sql`select a from daybook_event`);"), []);
});

test("state that a module keeps is refused", () => {
  assertRefused("src/jobs/claim.ts", "const known = new WeakMap<Store, number>();", /keeps state in the module; use/);
  assertRefused("src/jobs/claim.ts", "const known: Map<string, number> = new Map();", /keeps state in the module/);
  assertRefused("src/jobs/claim.ts", "let last = 0;", /keeps state in the module/);
  assertRefused("src/jobs/claim.ts", "export const seen: string[] = [];", /keeps state in the module/);
  assertRefused("src/jobs/claim.ts", "const counts: Record<string, number> = {};", /keeps state in the module/);
  assertAccepted("src/jobs/claim.ts", "const none: readonly string[] = [];");
  assertAccepted("src/jobs/claim.ts", 'const words: ReadonlySet<string> = new Set(["a"]);');
  assertAccepted("src/jobs/claim.ts", "function f() {\n  let last = 0;\n  const known = new Map();\n}");
  assertAccepted("src/telemetry/heartbeat-thread.ts", "let stopped = false;");
});

test("an object literal that is spread into another is refused", () => {
  assertRefused("src/jobs/claim.ts", "const a = { ...{ b, c }, d };", /long literals stay long/);
  assertAccepted("src/jobs/claim.ts", "const a = { ...b, ...(c && { d }) };");
});

test("a test that does not run is refused", () => {
  assertRefused("test/jobs/claim.test.ts", 'test.only("a", () => {});', /"test.only" keeps tests from running/);
  assertRefused("test/jobs/claim.test.ts", 'describe.skip("a", () => {});', /describe.skip/);
  assertRefused("test/jobs/claim.test.ts", 'it.todo("a");', /it.todo/);
  assertRefused("test/jobs/claim.test.ts", 'test("a", (t) => t.skip());', /t.skip/);
  assertRefused("test/jobs/claim.test.ts", 'test("a", { skip: true }, () => {});', /"skip: " keeps tests/);
  assertRefused("test/jobs/claim.test.ts", 'test("a", { timeout: 5, todo: "later" }, () => {});', /todo/);
  assertAccepted("test/jobs/claim.test.ts", 'test("a", () => { assert.equal(decision.skip, "{ skip: true }"); });');
});

test("a test that looks at the databases of others is refused", () => {
  const ends = "select pg_terminate_backend(pid) from";
  assertRefused("test/jobs/claim.test.ts", `sql\`${ends} pg_stat_activity\``, /sees the databases of other tests/);
  assertRefused("test/jobs/claim.test.ts", `sql\`${ends} pg_locks where true\``, /sees the databases of other tests/);
  assertAccepted("test/jobs/claim.test.ts", `sql\`${ends} pg_stat_activity\n where datname = current_database()\``);
});

test("only storage, tests and benchmarks load a database driver", () => {
  assertRefused(
    "src/jobs/claim.ts",
    'import { DatabaseSync } from "node:sqlite";',
    /only src\/storage talks to a driver/,
  );
  assertRefused("src/open.ts", 'const pg = await import("pg");', /imports pg; only src\/storage/);
  assertRefused("examples/tour.ts", 'import type { Pool } from "pg-pool";', /only src\/storage/);
  assertAccepted("src/storage/sqlite/open.ts", 'import { DatabaseSync } from "node:sqlite";');
  assertAccepted("test/storage/open.test.ts", 'import pg from "pg";');
  assertAccepted("bench/insert.ts", 'import { DatabaseSync } from "node:sqlite";');
});

test("a path that exists on one machine is refused in every text file", () => {
  for (const top of ["work", "root", "home", "Users"]) {
    assertRefused(
      "docs/setup.md",
      `first\nopen /${top}/daybook/shop.db`,
      /^2: .* exists on one machine; use a relative path/,
    );
  }
  assertAccepted("docs/setup.md", "GET /api/v1/work/next, https://example.org/home/page and ./work/shop.db");
});

test("a registry host in the lock file is refused", () => {
  assertRefused("package-lock.json", '{\n"resolved": "https://registry.example/a.tgz"', /^2: names a registry host/);
  assertAccepted("package-lock.json", '{ "integrity": "sha512-abc" }');
});

test("files are found without git too, and what is built or installed is left out", () => {
  const folder = mkdtempSync(join(tmpdir(), "daybook-tidy-"));
  try {
    for (const name of ["src", "node_modules", "dist"]) {
      mkdirSync(join(folder, name));
      writeFileSync(join(folder, name, "a.ts"), "export const a = 1;\n");
    }
    writeFileSync(join(folder, "picture.png"), Buffer.from([0, 1, 2]));

    const found = repoFiles(folder);

    assert.deepEqual(found, [{ path: "src/a.ts", text: "export const a = 1;\n" }]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});
