// A server in a process of its own, and requests that are sent to it by another one.
import { fork, spawn, type ChildProcess } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";

export const connections = 50;
const seconds = 4;

/** What the process of a server says once it listens. */
export type Served = { readonly port: number; readonly token: string; readonly id: string };
export type Server = Served & { readonly child: ChildProcess };

/** Since it was last asked: how long the loop of the server was held, the most that it worked in one piece, and the processor time that
 *  its process took. The last two hardly change when others are at work on the machine. */
export type Held = {
  readonly heldMs: number;
  readonly mostMs: number;
  readonly workedMs: number;
  readonly usedMs: number;
};

export async function startServer(kind: "ours" | "bare", book = "", runs = 0): Promise<Server> {
  const path = fileURLToPath(import.meta.resolve("./serve.ts"));
  const child = fork(path, [kind, book, String(runs)], { execArgv: [] });
  const [said] = (await once(child, "message")) as [Served];
  return { ...said, child };
}

export async function heldBy({ child }: Server): Promise<Held> {
  child.send("held");
  const [said] = (await once(child, "message")) as [Held];
  return said;
}

/** Requests per second that were answered with 200, and the processor time that one of them took the server. */
export type Load = { readonly perSecond: number; readonly usEach: number };

export async function load(server: Server, method: "GET" | "POST", forSeconds = seconds): Promise<Load> {
  const { port, token, id } = server;
  const base = `http://127.0.0.1:${port}/api/v1/jobs`;
  const job = JSON.stringify({ name: "send-receipt", params: { orderId: "o-17" } });
  const post = ["-m", "POST", "-H", "content-type=application/json", "-b", job, base];
  const asked = method === "GET" ? [`${base}/${id}`] : post;
  const cli = fileURLToPath(import.meta.resolve("autocannon"));
  const how = ["-j", "-c", String(connections), "-d", String(forSeconds), "-H", `authorization=Bearer ${token}`];
  const child = spawn(process.execPath, [cli, ...how, ...asked], { stdio: ["ignore", "pipe", "ignore"] });
  await heldBy(server);
  let text = "";
  for await (const chunk of child.stdout) text += String(chunk);
  const { requests, non2xx, errors } = JSON.parse(text) as Answered;
  if (non2xx > 0 || errors > 0) throw new Error(`${method} ${base}: ${non2xx} refused, ${errors} failed`);
  const { usedMs } = await heldBy(server);
  return { perSecond: requests.average, usEach: (usedMs * 1000) / requests.total };
}

type Answered = {
  readonly requests: { readonly average: number; readonly total: number };
  readonly non2xx: number;
  readonly errors: number;
};
