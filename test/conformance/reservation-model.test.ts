import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isDaybookError } from "../../src/index.ts";
import type { ClaimedJob } from "../../src/jobs/claim/claim.ts";
import { sweep } from "../../src/jobs/settle/rescue.ts";
import type { SessionKey } from "../../src/telemetry/session.ts";
import { askForTurn, declareDead, reservationsOf, takeDirect, work, type DirectTurn } from "../jobs/direct.ts";
import { assertInvariants, pick, tellStories } from "../jobs/model.ts";
import type { TestEngine } from "../jobs/open-engine.ts";
import { backends } from "../support/open-test.ts";
import { fc } from "../support/property.ts";

const lanes = [
  { tenant: "default", queue: "default" },
  { tenant: "default", queue: "other" },
  { tenant: "acme", queue: "default" },
] as const;
const minute = 60_000;

type Command =
  | { do: "enqueue"; lane: number }
  | { do: "reserve" | "direct"; lane: number; by: number }
  | { do: "renew" | "release"; which: number; by: number }
  | { do: "claim"; by: number; want: number }
  | { do: "takeTurn" | "end" | "shutDown" | "cancel"; which: number }
  | { do: "lose"; by: number }
  | { do: "pass"; ms: number }
  | { do: "sweep" };

// Most happens in one lane, so that its jobs meet.
const lane = fc.constantFrom(0, 0, 0, 1, 2);
const oneOf = <T extends string>(...words: readonly [T, ...T[]]): fc.Arbitrary<T> => fc.constantFrom(...words);
const command: fc.Arbitrary<Command> = fc.oneof(
  { weight: 5, arbitrary: fc.record({ do: oneOf("enqueue"), lane }) },
  { weight: 5, arbitrary: fc.record({ do: oneOf("reserve", "direct", "direct"), lane, by: fc.nat() }) },
  { weight: 3, arbitrary: fc.record({ do: oneOf("renew", "release"), which: fc.nat(), by: fc.nat() }) },
  { weight: 6, arbitrary: fc.record({ do: oneOf("claim"), by: fc.nat(), want: fc.integer({ min: 1, max: 3 }) }) },
  {
    weight: 9,
    arbitrary: fc.record({ do: oneOf("takeTurn", "takeTurn", "end", "end", "shutDown", "cancel"), which: fc.nat() }),
  },
  { weight: 1, arbitrary: fc.record({ do: oneOf("lose"), by: fc.nat() }) },
  { weight: 4, arbitrary: fc.record({ do: oneOf("pass"), ms: fc.constantFrom(1, minute, 5 * minute, 10 * minute) }) },
  { weight: 1, arbitrary: fc.record({ do: oneOf("sweep") }) },
);

/** What the model knows of a reservation: who holds which lane, and until when unless it is renewed. */
type Hold = { readonly id: string; readonly lane: number; readonly by: SessionKey; expiresAt: number };
type Row = { seq: number; id: string; lane_seq: number; status: string; origin: string; waits_key: string | null };

for (const backend of backends) {
  describe(backend, () => {
    test("whatever happens, a held queue stands still for all but its holder, and goes on in its order", async (t) => {
      await tellStories(t, backend, { use: [work], command, tell, long: true });
    });
  });
}

async function tell(at: TestEngine, commands: readonly Command[]): Promise<void> {
  const story = await begin(at);
  for (const each of commands) {
    await story.play(each);
    await story.check();
    await assertInvariants(at);
  }
  // Nobody renews any more: the queues are free, and whatever stands in them runs.
  await at.clock.advance(11 * minute);
  await story.play({ do: "sweep" });
  for (let round = 0; round < 100 && (await story.open()).length > 0; round++) {
    await story.play({ do: "claim", by: 0, want: 5 });
    while (story.running.size > 0) await story.play({ do: "end", which: 0 });
    await story.check();
  }
  assert.deepEqual(await story.open(), [], "something waits for ever");
}

async function begin(at: TestEngine) {
  const running = new Map<string, ClaimedJob & { by: SessionKey }>();
  const sessions = [await at.newSession(), await at.newSession()];
  const turns: DirectTurn[] = [];
  let holds: Hold[] = [];

  const session = (by: number): SessionKey => pick(sessions, by) as SessionKey;
  const rows = (where: string): Promise<Row[]> =>
    at.rows<Row>(
      `select seq, id, lane_seq, status, origin, waits_key from daybook_job_now where ${where} order by lane_seq, position`,
    );
  const open = (): Promise<Row[]> => rows("finished_at is null");
  const isHeld = (lane: number): boolean => holds.some((hold) => hold.lane === lane && hold.expiresAt > at.clock.now());
  const laneSeq = async ({ tenant, queue }: (typeof lanes)[number]): Promise<number> =>
    (
      await at.rows<{ seq: number }>(
        `select seq from daybook_lane where tenant_id = '${tenant}' and queue = '${queue}'`,
      )
    )[0]?.seq ?? 0;
  const nobodyHolds = (lane: number): void => void (holds = holds.filter((hold) => hold.lane !== lane));

  /** Asks for a lane; it is granted exactly when nobody holds it. */
  async function ask<T extends { id: string }>(
    lane: (typeof lanes)[number],
    by: SessionKey,
    reserve: () => Promise<T>,
  ): Promise<T | undefined> {
    const free = !isHeld(await laneSeq(lane));
    const granted = await permitted(reserve());
    assert.equal(granted !== undefined, free, "a free lane is granted, a held one is not");
    if (granted === undefined) return undefined;
    nobodyHolds(await laneSeq(lane));
    holds.push({ id: granted.id, lane: await laneSeq(lane), by, expiresAt: at.clock.now() + 10 * minute });
    return granted;
  }

  async function play(each: Command): Promise<void> {
    switch (each.do) {
      case "enqueue": {
        const { tenant, queue } = pick(lanes, each.lane) as (typeof lanes)[number];
        await at.tenant(tenant).jobs.enqueue(work, {}, { queue });
        return;
      }
      case "reserve": {
        const lane = pick(lanes, each.lane) as (typeof lanes)[number];
        const by = session(each.by);
        await ask(lane, by, () => reservationsOf(at, by, lane.tenant).reserve(lane.queue));
        return;
      }
      case "direct": {
        const lane = pick(lanes, each.lane) as (typeof lanes)[number];
        const by = session(each.by);
        const turn = await ask(lane, by, () => askForTurn(at, { by, ...lane }));
        if (turn !== undefined) turns.push(turn);
        return;
      }
      case "renew":
      case "release": {
        const hold = pick(holds, each.which);
        if (hold === undefined) return;
        const by = session(each.by);
        const [found] = await at.rows<{ tenant_id: string }>(
          `select tenant_id from daybook_lane where seq = ${hold.lane}`,
        );
        const may = hold.by.seq === by.seq && isHeld(hold.lane);
        const done = await permitted(
          reservationsOf(at, by, found?.tenant_id)
            [each.do](hold.id)
            .then(() => true),
        );
        assert.equal(done === true, may, `only its owner may ${each.do} what is held`);
        if (may && each.do === "release") nobodyHolds(hold.lane);
        if (may && each.do === "renew") hold.expiresAt = at.clock.now() + 10 * minute;
        return;
      }
      case "claim":
        return claim(session(each.by), each.want);
      case "takeTurn": {
        const turn = pick(turns, each.which);
        if (turn !== undefined) await tryDirect(turn);
        return;
      }
      case "end":
      case "shutDown": {
        const claimed = pick([...running.values()], each.which);
        if (claimed === undefined) return;
        running.delete(claimed.run_id);
        const status = each.which % 2 === 0 ? "success" : "error";
        await at.end(claimed, each.do === "end" ? { status } : { status: "cancelled", shutdown: true });
        // The end of direct work is the end of its turn.
        const turn = turns.find(({ jobId }) => jobId === claimed.id);
        holds = holds.filter(({ id }) => id !== turn?.id);
        return;
      }
      case "cancel": {
        const found = pick(await rows("status = 'waiting'"), each.which);
        // Some of them are another tenant's.
        if (found !== undefined) await permitted(at.jobs.cancel(found.id), "not_found");
        return;
      }
      case "lose": {
        const lost = session(each.by);
        await declareDead(at, lost);
        sessions[sessions.indexOf(lost)] = await at.newSession();
        await swept();
        holds = holds.filter((hold) => hold.by.seq !== lost.seq);
        for (const [runId, { by }] of running) if (by.seq === lost.seq) running.delete(runId);
        return;
      }
      case "pass":
        return at.clock.advance(each.ms);
      case "sweep":
        return swept();
    }
  }

  async function swept(): Promise<void> {
    await sweep(at.engine);
    holds = holds.filter((hold) => hold.expiresAt > at.clock.now());
  }

  /** A claim takes from lanes that nobody holds, from the front, and never nothing when there is something. */
  async function claim(by: SessionKey, want: number): Promise<void> {
    const before = await rows("status = 'queued'");
    const free = before.filter((row) => !isHeld(row.lane_seq));
    const { claim: found } = await at.turn(want, at.claimer(by.seq));
    for (const each of found.jobs) running.set(each.run_id, { ...each, by });
    assert.ok(
      found.jobs.every((each) => !isHeld(each.lane_seq)),
      "J10: started inside a reservation",
    );
    assert.equal(found.jobs.length, Math.min(want, free.length), "J9: what may run is taken");
    for (const lane of new Set(free.map((row) => row.lane_seq))) {
      const taken = found.jobs.filter((each) => each.lane_seq === lane).map(({ seq }) => seq);
      const first = free.filter((row) => row.lane_seq === lane).map(({ seq }) => seq);
      assert.deepEqual(taken, first.slice(0, taken.length), "the order of a line is untouched");
    }
  }

  /** Direct work begins when its turn is still held for it and nothing else runs in the lane. */
  async function tryDirect(turn: DirectTurn): Promise<void> {
    const line = await rows("status = 'queued'");
    const waits = (await rows(`id = '${turn.jobId}' and status = 'waiting'`)).length === 1;
    const busy = (await rows(`status = 'running' and lane_seq = ${turn.laneSeq}`)).length > 0;
    const alive = sessions.some(({ seq }) => seq === turn.by.seq);
    const found = await takeDirect(at, turn);
    for (const each of found.jobs) running.set(each.run_id, { ...each, by: turn.by });
    assert.deepEqual(
      found.jobs.map(({ id }) => id),
      waits && !busy && alive ? [turn.jobId] : [],
    );
    assert.deepEqual(await rows("status = 'queued'"), line);
  }

  async function check(): Promise<void> {
    const active = await at.rows<{ id: string; lane_seq: number; expires_at: number }>(
      "select id, lane_seq, expires_at from daybook_reservation where status = 'active' order by id",
    );
    assert.deepEqual(
      active.map(({ id, lane_seq: lane, expires_at: expiresAt }) => ({ id, lane, expiresAt })),
      holds.map(({ id, lane, expiresAt }) => ({ id, lane, expiresAt })).toSorted((a, b) => (a.id < b.id ? -1 : 1)),
    );
    assert.equal(new Set(active.map((each) => each.lane_seq)).size, active.length, "J10: one per lane");
    // J15: direct work waits exactly as long as its turn is there, and is nowhere else in the meantime.
    for (const row of await rows("origin = 'direct' and status in ('waiting', 'queued')")) {
      assert.equal(row.status, "waiting");
      assert.ok(
        holds.some(({ id }) => id === row.waits_key),
        "it waits for what nobody holds",
      );
    }
  }

  return { running, play, check, open };
}

// What a command may answer: it was done, or it was refused because of what others have.
async function permitted<T>(asked: Promise<T>, ...also: string[]): Promise<T | undefined> {
  return asked.catch((error: unknown) => {
    if (!isDaybookError(error) || !["conflict", ...also].includes(error.code)) throw error;
    return undefined;
  });
}
