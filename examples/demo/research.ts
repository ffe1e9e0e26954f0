// A research pipeline: papers are fetched, read, learned from and drawn. An experiment is a group of jobs that have one fate; what
// takes long says how far it is, and goes on where it was when its process ends.
import { join } from "node:path";
import { command, job, type Book, type Definition } from "daybook";
import { z } from "zod";
import { between, chance } from "./chance.ts";
import { takes } from "./world.ts";

const fetchPapers = job("fetch-papers", {
  params: z.object({ topic: z.string() }),
  queue: "research",
  attempts: 3,
  backoff: ["30s", "5m"],
  rate: { max: 6, per: "1m" },
  async run({ topic }, { attempt, job: { createdAt }, log, progress, signal }) {
    const hour = Math.floor(createdAt / 3_600_000);
    for (const page of [1, 2, 3]) {
      await takes(between(700, 2600, "page", hour, page), signal);
      if (chance("arxiv", hour, attempt, page) < 0.04) throw new Error("getaddrinfo EAI_AGAIN export.arxiv.example");
      progress(page / 3, `page ${page} of 3`);
    }
    log(`papers on ${topic}`, { found: 3 });
  },
});

export const trainModel = job("train-model", {
  params: z.object({ dataset: z.string(), epochs: z.number().int().default(8) }),
  queue: "gpu",
  attempts: 2,
  backoff: ["2m"],
  timeout: "6h",
  // One at a time learns from the same papers.
  limit: { key: ({ dataset }) => dataset, concurrency: 1 },
  async run({ dataset, epochs }, { attempt, job: { createdAt }, log, progress, signal, step }) {
    let loss = 2.4;
    for (let epoch = 1; epoch <= epochs; epoch++) {
      // A step is kept: a run that goes on after a restart does not learn the same again.
      loss = await step(`epoch ${epoch}`, async () => {
        await takes(between(14_000, 32_000, "epoch", dataset, epoch), signal);
        if (epoch === 5 && chance("cuda", dataset, Math.floor(createdAt / 3_600_000)) < 0.12 && attempt === 1) {
          throw new RangeError("CUDA out of memory: tried to allocate 2.50 GiB");
        }
        return Number((loss * 0.93).toFixed(4));
      });
      progress(epoch / epochs, `epoch ${epoch} of ${epochs}, loss ${loss}`);
    }
    log("learned", { loss });
    return { loss };
  },
});

const archiveResults = job("archive-results", {
  params: z.object({ experiment: z.string() }),
  queue: "archive",
  priority: -10,
  run: async ({ experiment }, { signal }) => takes(between(500, 900, "archive", experiment), signal),
});

/** `folder` is where programs find and leave their files. */
export function research(folder: string): Definition[] {
  const program = (name: string): string => join(import.meta.dirname, "programs", name);
  const extractText = command("extract-text", {
    params: z.object({ paper: z.string() }),
    argv: [program("extract-text"), "{paper}"],
    queue: "research",
    cwd: folder,
    artifacts: ["text/*.txt"],
    attempts: 1,
    timeout: "2m",
  });
  const plotResults = command("plot-results", {
    params: z.object({ experiment: z.string() }),
    argv: [program("plot-results"), "{experiment}"],
    queue: "research",
    cwd: folder,
    artifacts: ["plots/*.svg"],
    timeout: "2m",
  });

  /** Fired every two hours: makes an experiment, whose jobs run one after another. */
  const planExperiment = job("plan-experiment", {
    queue: "research",
    priority: 20,
    async run(_params: unknown, { finish, job: { createdAt } }) {
      const number = Math.floor(createdAt / 7_200_000) % 1000;
      const name = `experiment-${number}`;
      await finish(async (tx) => {
        const { id } = await tx.groups.create({ name, mode: "sequential", onFailure: "skip" }, (group) => {
          group.add(fetchPapers, { topic: "durable execution" });
          group.add(extractText, { paper: `paper-${number}` });
          group.add(trainModel, { dataset: `papers-${number % 5}` });
          group.add(plotResults, { experiment: name });
        });
        await tx.jobs.enqueue(archiveResults, { experiment: name });
        return { group: id };
      });
    },
  });
  return [fetchPapers, extractText, trainModel, plotResults, archiveResults, planExperiment];
}

/** What is the laboratory's own: a template, a queue with one machine, and one that is being moved. */
export async function openTheLaboratory(book: Book): Promise<void> {
  await book.templates.create("overnight-training", {
    job: trainModel,
    params: { dataset: "arxiv-2026", epochs: 160 },
    priority: -20,
  });
  await book.queues.limit("gpu", { concurrency: 2 });
  await book.queues.limit("research", { concurrency: 3 });
  await book.queues.pause("archive", "the archive's disks are being replaced until Monday");
}
