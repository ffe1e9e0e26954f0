// schedules pause, resume, remove, trigger, backfill and prune: schedules that exist, and are steered.
import { limits } from "../../core/limits.ts";
import { duration, flag, maybe, text, time } from "../field.ts";
import { ago, count, sentence, time as timeCell } from "../shown.ts";
import { verb } from "../verb.ts";

const name = text("the name of the schedule", "name");

export const steer = {
  pause: verb({
    words: "schedules pause <name>",
    http: "POST /schedules/{name}/pause",
    role: "operate",
    about: "fire no more until the schedule is resumed",
    more: "Its jobs go on. What is due while it is paused is kept as one decision, and is not made up for.",
    input: { name, note: maybe(text("why; those who look at the schedule see it", "text", limits.noteBytesMax)) },
    examples: ['schedules pause receipts --note "the mail server is moved"'],
    async run(book, { name: schedule, note }) {
      await book.schedules.pause(schedule, note);
      return book.schedules.get(schedule);
    },
    show: (schedule) => `${schedule.name} is paused`,
  }),

  resume: verb({
    words: "schedules resume <name>",
    http: "POST /schedules/{name}/resume",
    role: "operate",
    about: "go on with the next slot",
    input: { name },
    examples: ["schedules resume receipts"],
    async run(book, { name: schedule }) {
      await book.schedules.resume(schedule);
      return book.schedules.get(schedule);
    },
    show: (schedule) =>
      schedule.nextAt === null
        ? `${schedule.name} is resumed and is over`
        : sentence(`${schedule.name} is resumed and fires next`, ago(schedule.nextAt)),
  }),

  remove: verb({
    words: "schedules remove <name>",
    http: "DELETE /schedules/{name}",
    role: "operate",
    about: "remove a schedule",
    more: `Its jobs and its decisions stay. A schedule that is defined in code comes back with it: remove it there, or
pause it (conflict, exit code 5).`,
    input: { name },
    examples: ["schedules remove receipts"],
    async run(book, { name: schedule }) {
      await book.schedules.remove(schedule);
      return { name: schedule, removed: true };
    },
    show: (done) => `${done.name} is removed`,
  }),

  trigger: verb({
    words: "schedules trigger <name>",
    http: "POST /schedules/{name}/trigger",
    role: "operate",
    about: "fire a schedule once, now",
    more: "It also fires while it is paused, and beside a job of it that runs. This counts as no slot and moves none.",
    input: { name },
    examples: ["schedules trigger receipts"],
    async run(book, { name: schedule }) {
      const { jobId, eventId } = await book.schedules.trigger(schedule);
      return { name: schedule, jobId, eventId };
    },
    show: ({ name: schedule, jobId, eventId }) =>
      jobId === null ? `${schedule} published event ${eventId}` : `${schedule} made job ${jobId}`,
  }),

  backfill: verb({
    words: "schedules backfill <name> <from> <to>",
    http: "POST /schedules/{name}/backfill",
    role: "operate",
    about: "fire the slots of a stretch of the past that were not fired",
    more: `Slots that were fired before are not fired again, and what was skipped is fired now. The jobs are made all
at once, whatever the schedule says about jobs that overlap.`,
    input: {
      name,
      from: time("the first moment, ISO 8601 with a zone"),
      to: time("the last moment, not in the future"),
      dryRun: maybe(flag("only say which slots would be fired")),
    },
    examples: ["schedules backfill receipts 2026-03-01T00:00:00Z 2026-03-08T00:00:00Z --dry-run"],
    async run(book, { name: schedule, from, to, ...options }) {
      const { dryRun, slots, already } = await book.schedules.backfill(schedule, from, to, options);
      return { dryRun, slots: slots.map((at) => ({ at })), already };
    },
    show({ dryRun, slots, already }) {
      const fired = dryRun ? "would be" : slots.length === 1 ? "is" : "are";
      return [
        `${count(slots.length, "slot")} ${fired} fired; ${already} had been before.`,
        ...slots.map(({ at }) => sentence(timeCell(at))),
      ];
    },
  }),

  prune: verb({
    words: "schedules prune",
    http: "POST /schedules/prune",
    role: "admin",
    destroys: true,
    about: "remove old decisions of the tenant's schedules",
    more: `Without --apply the decisions are only counted. A decision stays while its job, or a retry of it, has not
ended. No slot is fired again because of a removal, but "schedules why" has no answer for what was
removed, and a backfill refuses it.`,
    input: {
      olderThan: duration("only those that were made at least this long ago: 90d, 12h"),
      apply: maybe(flag("remove them")),
    },
    examples: ["schedules prune --older-than 90d", "schedules prune --older-than 90d --apply"],
    run: (book, { olderThan, apply = false }) => book.schedules.prune({ olderThan, dryRun: !apply }),
    show: ({ dryRun, decisions }) =>
      dryRun
        ? `${count(decisions, "decision")} would be removed; remove them with --apply`
        : `${count(decisions, "decision")} removed`,
  }),
};
