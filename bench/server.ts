// What HTTP costs: the same requests to a server on a book and to a bare one whose handlers do nothing, one after the other.
import { fork, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import type { Benchmark } from "./harness/benchmark.ts";
import { scratch } from "./harness/scratch.ts";

const connections = 50;
const seconds = 4;
const rounds = 3;

type Served = { readonly port: number; readonly token: string; readonly id: string; readonly child: ChildProcess };

export const server: Benchmark = {
  name: "server",
  title: `HTTP, ${connections} connections: a job is enqueued on disk, and a job is shown`,
  async run(report) {
    const ours = await start("ours", scratch("server.db"));
    const bare = await start("bare");
    try {
      const found = {
        post: { ours: [] as number[], bare: [] as number[] },
        get: { ours: [] as number[], bare: [] as number[] },
      };
      for (const each of [bare, ours]) await load(each, "POST", 2);
      for (let round = 0; round < rounds; round++) {
        found.post.bare.push(await load(bare, "POST"));
        found.post.ours.push(await load(ours, "POST"));
        found.get.bare.push(await load(bare, "GET"));
        found.get.ours.push(await load(ours, "GET"));
      }
      report.rates("POST /jobs, durable ÷ a handler that does nothing", {
        ours: found.post.ours,
        reference: found.post.bare,
        goalMin: 0.4,
      });
      report.rates("GET /jobs/{id} ÷ a handler that does nothing", {
        ours: found.get.ours,
        reference: found.get.bare,
        goalMin: 0.6,
      });
    } finally {
      ours.child.kill();
      bare.child.kill();
    }
  },
};

async function start(kind: "ours" | "bare", book = ""): Promise<Served> {
  const child = fork(fileURLToPath(import.meta.resolve("./server/serve.ts")), [kind, book], { execArgv: [] });
  const [said] = (await once(child, "message")) as [Omit<Served, "child">];
  return { ...said, child };
}

/** Requests per second that were answered with 200. */
async function load({ port, token, id }: Served, method: "GET" | "POST", forSeconds = seconds): Promise<number> {
  const base = `http://127.0.0.1:${port}/api/v1/jobs`;
  const asked =
    method === "GET"
      ? [`${base}/${id}`]
      : [
          "-m",
          "POST",
          "-H",
          "content-type=application/json",
          "-b",
          '{"name":"send-receipt","params":{"orderId":"o-17"}}',
          base,
        ];
  const cli = fileURLToPath(import.meta.resolve("autocannon"));
  const args = [
    cli,
    "-j",
    "-c",
    String(connections),
    "-d",
    String(forSeconds),
    "-H",
    `authorization=Bearer ${token}`,
    ...asked,
  ];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "ignore"] });
  let text = "";
  for await (const chunk of child.stdout) text += String(chunk);
  const { requests, non2xx, errors } = JSON.parse(text) as {
    requests: { average: number };
    non2xx: number;
    errors: number;
  };
  if (non2xx > 0 || errors > 0) throw new Error(`${method} ${base}: ${non2xx} refused, ${errors} failed`);
  return requests.average;
}
