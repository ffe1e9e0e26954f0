import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { job, manualClock } from "../../src/index.ts";
import { fireDue } from "../../src/schedules/fire.ts";
import { render } from "../../src/verbs/render.ts";
import { schedules } from "../../src/verbs/sources/schedules.ts";
import { projectWith } from "../docs/snippet.ts";
import { cleanup, openTest, openTestStore } from "../support/open-test.ts";
import { tamper } from "../support/tamper.ts";
import { answer, items, refusal } from "./answer-of.ts";
import { cliBackends, runCli, startCli } from "./run-cli.ts";
import { until } from "./until.ts";

const send = job("send", { attempts: 7, timeout: "9s", run: () => undefined });
const daily = ["--daily", "02:30", "--zone", "Europe/Madrid", "--job", "send"];

for (const backend of cliBackends) {
  test(`${backend}: a schedule is created, shown, edited, paused, resumed and removed`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const policies = ["--missed", "all", "--max-lateness", "2h", "--overlap", "queue", "--jitter", "1m"];
    const bounds = ["--start", "2030-01-01T00:00:00Z", "--end", "2040-01-01T00:00:00Z", "--max-fires", "9"];
    const rest = ["--pause-after-failures", "3", "--gap", "skip", "--ambiguous", "both", "--params", '{"n": 1}'];

    const made = await answer(
      ["schedules", "create", "night", ...daily, ...policies, ...bounds, ...rest, "--tag", "a"],
      url,
    );
    const taken = await refusal(["schedules", "create", "night", ...daily], url);
    const words = await runCli(["schedules", "show", "night", "--book", url]);
    const edited = await answer(
      ["schedules", "edit", "night", "--cron", "0 7 * * 1-5", "--jitter", "none", "--end", "none", "--params", "[2]"],
      url,
    );
    const paused = await answer(["schedules", "pause", "night", "--note", "audit"], url);
    const resumed = await runCli(["schedules", "resume", "night", "--book", url]);
    const theirs = await refusal(["schedules", "show", "night", "--tenant", "acme"], url);
    const misspelt = await refusal(["schedules", "show", "nigth"], url);
    const removed = await answer(["schedules", "remove", "night"], url);

    const { id: _id, createdAt, updatedAt, nextAt, warning, ...shown } = made;
    assert.deepEqual(shown, {
      name: "night",
      source: "api",
      kind: "daily",
      expression: "02:30",
      zone: "Europe/Madrid",
      gap: "skip",
      ambiguous: "both",
      startsAt: "2030-01-01T00:00:00.000Z",
      endsAt: "2040-01-01T00:00:00.000Z",
      words: "every day at 02:30 (Europe/Madrid)",
      target: { kind: "job", name: "send" },
      params: { n: 1 },
      missed: "all",
      maxLatenessMs: 7_200_000,
      overlap: "queue",
      jitterMs: 60_000,
      maxFires: 9,
      pauseAfterFailures: 3,
      lastFiredAt: null,
      fires: 0,
      failures: 0,
      held: false,
      paused: null,
    });
    assert.equal(updatedAt, createdAt);
    assert.match(String(warning), /^job "send" was never hosted by this book/);
    assert.match(String(nextAt), /^2030-01-01T01:3\d:/);
    assert.deepEqual(taken.slice(0, 2), [5, "conflict"]);
    assert.match(words.stdout, /^schedule\tnight\nwhen\tevery day at 02:30 \(Europe\/Madrid\)\ndaily\t02:30\n/);
    assert.match(words.stdout, /missed\tall, at most 2h late\noverlap\tqueue\njitter\tup to 1m\n/);
    assert.match(words.stdout, /fires\t0 of 9\nfailures\t0 in a row, pauses after 3\n/);
    assert.match(words.stdout, /params\n\{\n {2}"n": 1\n\}\n\ndecisions\nslot\tslots\tdecision\tjob or event\tnote\n$/);
    assert.deepEqual(
      [edited["kind"], edited["expression"], edited["jitterMs"], edited["endsAt"], edited["params"], edited["zone"]],
      ["cron", "0 7 * * 1-5", 0, null, [2], "Europe/Madrid"],
    );
    assert.deepEqual([paused["nextAt"], (paused["paused"] as { note: string }).note], [null, "audit"]);
    assert.match(resumed.stdout, /^night is resumed and fires next 20\d\d-\d\d-\d\dT/);
    assert.deepEqual(theirs.slice(0, 2), [4, "not_found"]);
    assert.match(misspelt[2], /did you mean "night"\?/);
    assert.deepEqual(removed, { name: "night", removed: true });
    assert.deepEqual((await book.schedules.list()).items, []);
  });

  test(`${backend}: what says not when, not what, or nonsense is refused`, async (t) => {
    const { url } = await openTest(t, backend, { worker: false });
    const add = (...args: string[]): Promise<[number | null, string, string]> =>
      refusal(["schedules", "create", "wrong", ...args], url);

    for (const [args, expected] of [
      [["--job", "send"], /says not when/],
      [["--every", "1h"], /give "job", "template" or "event"/],
      [["--in", "soon", "--job", "send"], /--in is "soon", which is not a duration/],
      [["--at", "2020-01-01T00:00:00Z", "--job", "send"], /would never fire/],
      [["--every", "1h", "--daily", "07:00", "--job", "send"], /in 2 ways \(every, daily\)/],
      [["--cron", "0 0 31 2 *", "--job", "send"], /never/],
      [["--every", "1h", "--job", "send", "--max-fires", "many"], /--max-fires is "many": give a whole number from 1/],
      [["--every", "1h", "--job", "send", "--missed", "some"], /latest, all, skip/],
    ] as const) {
      const [exit, code, message] = await add(...args);
      assert.deepEqual([exit, code], [2, "invalid"], args.join(" "));
      assert.match(message, expected);
    }
    assert.deepEqual((await add("--every", "1h", "--template", "none")).slice(0, 2), [4, "not_found"]);
  });

  test(`${backend}: a preview shows both clocks and marks, of what is saved, edited, or neither`, async (t) => {
    const { url } = await openTest(t, backend, { worker: false });
    await answer(["schedules", "create", "night", ...daily], url);
    const here = ["--here", "America/New_York", "--after", "2026-03-28T12:00:00Z", "--count", "2"];

    const saved = await answer(["schedules", "preview", "night", ...here], url);
    const loose = await answer(
      ["schedules", "preview", "--cron", "30 2 * * *", "--zone", "Europe/Madrid", ...here],
      url,
    );
    const edit = await answer(["schedules", "preview", "night", "--daily", "05:00", ...here], url);
    const words = await runCli(["schedules", "preview", "night", ...here, "--book", url]);
    const both = await runCli(["schedules", "preview", "night", "--daily", "05:00", ...here, "--book", url]);
    const empty = await refusal(["schedules", "preview"], url);

    const at = (utc: string): object => ({ at: utc, fireAt: utc });
    const before = [
      { ...at("2026-03-29T01:00:00.000Z"), local: "2026-03-29T02:30:00", there: "2026-03-28T21:00:00", dst: "gap" },
      { ...at("2026-03-30T00:30:00.000Z"), local: "2026-03-30T02:30:00", there: "2026-03-29T20:30:00", dst: null },
    ];
    assert.deepEqual([saved, loose], [{ fires: before }, { fires: before }]);
    assert.deepEqual(edit["before"], before);
    assert.deepEqual(
      (edit["after"] as { local: string }[]).map(({ local }) => local),
      ["2026-03-29T05:00:00", "2026-03-30T05:00:00"],
    );
    assert.match(words.stdout, /^fires\ton its own clock\tAmerica\/New_York\tmark\n2026-03-29T01:00:00\.000Z\t/);
    assert.match(words.stdout, /gap \(clock goes forward: moved\)\n/);
    assert.match(both.stdout, /^as it is\n[^]*\n\nas it would be\n/);
    assert.match(empty[2], /says not when/);
    assert.equal((await answer(["schedules", "show", "night"], url))["expression"], "02:30");
  });

  test(`${backend}: a schedule of an event is created, shown and triggered, and its payload is edited`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    const event = ["--event", "house.dusk", "--payload", '{"lights":"on"}'];

    const made = await answer(["schedules", "create", "dusk", "--daily", "18:30", ...event, "--priority", "5"], url);
    const both = await refusal(["schedules", "create", "two", "--every", "1h", "--job", "send", ...event], url);
    const edited = await answer(["schedules", "edit", "dusk", "--payload", "[1]"], url);
    const triggered = await answer(["schedules", "trigger", "dusk"], url);
    const words = await runCli(["schedules", "show", "dusk", "--book", url]);

    assert.deepEqual([made["target"], made["params"]], [{ kind: "event", name: "house.dusk" }, { lights: "on" }]);
    assert.match(both[2], /give job, template or event, and not two of them/);
    assert.deepEqual(edited["params"], [1]);
    const said = await book.events.get(String(triggered["eventId"]));
    assert.deepEqual([triggered["jobId"], said.topic, said.payload, said.priority], [null, "house.dusk", [1], 5]);
    assert.match(words.stdout, /event\thouse\.dusk/);
    assert.match(words.stdout, new RegExp(`payload\n[^]*\tmanual\t${said.id}\t`));
    assert.ok(!words.stdout.includes("overlap"));
  });

  test(`${backend}: trigger, backfill and why, with the ledger to look at`, async (t) => {
    const clock = manualClock({ at: Date.UTC(2026, 0, 15, 12, 0, 1) });
    const { book, url } = await openTest(t, backend, { use: [send], clock });
    const { store } = await openTestStore(t, backend, { url, clock });
    await book.schedules.create("hourly", { cron: "0 * * * *", job: send, params: {}, missed: "skip" });
    clock.step(3 * 3_600_000);
    await store.write((tx) => fireDue(tx, { kinds: {} }));

    // Known by name only here, it keeps what its definition said.
    await answer(["schedules", "edit", "hourly", "--params", '{"n": 2}'], url);
    const triggered = await answer(["schedules", "trigger", "hourly"], url);
    const stretch = ["2026-01-15T12:30:00Z", "2026-01-15T14:30:00Z"];
    const dry = await answer(["schedules", "backfill", "hourly", ...stretch, "--dry-run"], url);
    const filled = await runCli(["schedules", "backfill", "hourly", ...stretch, "--book", url]);
    const again = await answer(["schedules", "backfill", "hourly", ...stretch], url);
    const late = await refusal(
      ["schedules", "backfill", "hourly", "2026-01-15T12:30:00Z", "2126-01-15T14:30:00Z"],
      url,
    );
    const shown = await answer(["schedules", "decisions", "hourly", "--limit", "3"], url);
    const why = await runCli(["schedules", "why", "hourly", "2026-01-15T14:00:00Z", "--book", url]);
    const none = await answer(["schedules", "why", "hourly", "2026-01-15T14:30:00Z"], url);
    const rest = await answer(["schedules", "decisions", "hourly", "--after", String(shown["next"])], url);
    const table = await runCli(["schedules", "show", "hourly", "--book", url]);
    const soon = await answer(["schedules", "create", "soon", "--in", "10m", "--job", "send"], url);
    const would = await answer(["retain", "--decisions", "0s"], url);
    const gone = await runCli(["retain", "--decisions", "0s", "--apply", "--book", url]);

    const { attempts, params } = await book.jobs.get(String(triggered["jobId"]));
    assert.deepEqual([attempts, params], [7, { n: 2 }]);
    const slots = ["2026-01-15T13:00:00.000Z", "2026-01-15T14:00:00.000Z"];
    assert.deepEqual(dry, { dryRun: true, slots: slots.map((at) => ({ at })), already: 0 });
    assert.equal(filled.stdout, `2 slots are fired; 0 had been before.\n${slots.join("\n")}\n`);
    assert.deepEqual(again, { dryRun: false, slots: [], already: 2 });
    assert.deepEqual(late.slice(0, 2), [2, "invalid"]);
    assert.deepEqual(
      items(shown).map(({ kind }) => kind),
      // The command's clock is ours, so for it the edit came long after what the book had decided.
      ["manual", "skipped_missed", "fired"],
    );
    assert.ok(items(rest).length > 0 && items(rest).every(({ at }) => String(at) < String(items(shown)[2]?.["at"])));
    assert.match(why.stdout, /^backfilled\nIt ran because somebody asked [^]*Its job is /);
    assert.equal(none["isSlot"], false);
    assert.match(String((none["because"] as string[])[0]), /^It is not due at 2026-01-15T14:30:00/);
    assert.match(table.stdout, /\ndecisions\nslot\tslots\tdecision\tjob or event\tnote\n/);
    assert.deepEqual([soon["kind"], Date.parse(String(soon["nextAt"])) > Date.now()], ["once", true]);
    // The others have jobs that are open.
    assert.equal(would["decisions"], 1);
    assert.match(gone.stdout, /^1 decision removed\n/);
  });

  test(`${backend}: why answers for each kind of decision, and for a time that is no slot`, async (t) => {
    const clock = manualClock({ at: Date.UTC(2026, 0, 15, 12, 0, 1) });
    const { book, url } = await openTest(t, backend, { use: [send], clock, worker: false });
    await book.schedules.create("hourly", { cron: "0 * * * *", job: send, params: {} });
    const ran = ["fired", "late", "caught_up", "shifted_dst", "backfilled", "manual"];
    const kinds = [...ran, "skipped_missed", "skipped_overlap", "skipped_paused"];
    const slots = kinds.map((kind, index) => ({ kind, at: Date.UTC(2026, 0, 15, 13 + index) }));
    await tamper(book, async (tx) => {
      for (const { kind, at } of slots) {
        const job = ran.includes(kind) ? `job-of-${kind}` : null;
        await tx.sql`insert into daybook_decision (tenant_id, schedule_seq, slot_at, until_at, slots, kind, decided_at, job_id)
          select tenant_id, seq, ${at}, ${at}, 1, ${kind}, ${at}, ${job} from daybook_schedule`;
      }
    });

    const all = await Promise.all(
      [...slots.map(({ at }) => at), Date.UTC(2026, 0, 15, 13, 30)].map((at) =>
        runCli(["schedules", "why", "hourly", new Date(at).toISOString(), "--book", url]),
      ),
    );

    const said = all.map(({ stdout }) => stdout.replaceAll(/ [^]*/g, ""));
    assert.deepEqual(said, [...kinds.map((kind) => `${kind}\nIt`), "no"]);
    for (const [index, { stdout }] of all.slice(0, kinds.length).entries()) {
      assert.match(
        stdout,
        index < ran.length ? new RegExp(`\\bIt ran[^]*job-of-${kinds[index]}`) : /\bIt did not run: /,
      );
    }
    assert.equal(new Set(all.map(({ stdout }) => stdout)).size, all.length);
  });

  test(`${backend}: schedules are listed by name, page by page, each tenant its own`, async (t) => {
    const { book, url } = await openTest(t, backend, { worker: false });
    for (const name of ["b", "a", "c"]) await book.schedules.create(name, { every: "1h", job: "send" });
    await book.tenant("acme").schedules.create("theirs", { every: "1h", job: "send" });
    await book.schedules.pause("b", "audit");

    const all = await answer(["schedules", "list"], url);
    const first = await answer(["schedules", "list", "--limit", "2"], url);
    const rest = await answer(["schedules", "list", "--after", String(first["next"])], url);
    const words = await runCli(["schedules", "list", "--limit", "2", "--book", url]);

    const names = (page: Record<string, unknown>): unknown[] => items(page).map((each) => each["name"]);
    assert.deepEqual([names(all), names(rest)], [["a", "b", "c"], ["c"]]);
    assert.match(words.stdout, /^name\twhen\tfires\tnext\tlast fired\tnote\na\tevery 1h \(UTC\)\tjob send\t\d{4}-/);
    assert.match(words.stdout, /\nb\t.*\tpaused: audit\n/);
    assert.match(words.stderr, /^There are more: daybook schedules list .*--limit 2 --after \S+\n$/);
  });
}

test("run writes the schedules that a file exports, and fires them", async (t) => {
  const { book, url } = await openTest(t, "sqlite", { worker: false });
  const module = `
import { job, schedule } from "daybook";
export const greet = job("greet", { run: () => "Hello." });
export const seconds = schedule("seconds", { every: "1s", job: greet, params: {} });
`;
  const folder = projectWith(t, { "jobs.ts": module });
  const { child, ended } = startCli(["run", join(folder, "jobs.ts"), "--book", url], {
    env: { NODE_OPTIONS: "--conditions=@daybook/source" },
  });
  cleanup(t, () => void child.kill("SIGKILL"));
  await until(async () => (await book.jobs.list({ status: "completed" })).items.length > 0);
  child.kill("SIGTERM");
  assert.equal((await ended).code, 0);
  assert.equal((await book.schedules.get("seconds")).source, "code");
});

test("a schedule that has decided nothing says so, and says nothing of a cursor", async (t) => {
  const { book } = await openTest(t, "sqlite", { worker: false });
  await book.schedules.create("night", { daily: "02:30", job: "send" });
  const shown = await schedules.show.run(book, { name: "night" }, { signal: t.signal, tenant: null });
  const paper = { width: 100, colour: false, zone: "UTC", now: Date.UTC(2026, 2, 6) };
  assert.match(
    render(schedules.show.show(shown, { name: "night" }), paper),
    /decisions\n *No slot has been decided\.$/,
  );
});
