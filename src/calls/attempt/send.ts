// The handler of a call's job: reads and opens the request, writes the attempt down, sends it, and keeps what came back for
// the transaction that ends the run (settled.ts).
import { killPoint } from "../../core/fault.ts";
import { DaybookError, isDaybookError } from "../../core/error.ts";
import { sql } from "../../storage/sql.ts";
import type { Store } from "../../storage/store.ts";
import { advise } from "../../jobs/advice.ts";
import type { RunContext } from "../../jobs/context.ts";
import type { Engine } from "../../jobs/engine.ts";
import { sealedFor, type CallPolicy } from "../call.ts";
import type { Phases } from "../client/connector.ts";
import { exchange, type Outgoing } from "../client/exchange.ts";
import { failureOf, reasonOf } from "../client/failure.ts";
import { signatureHeaders } from "../client/sign.ts";
import { callRefused } from "../facts.ts";
import type { RequestContent, ShownRequest } from "../request/content.ts";
import { markWith, shownHeaders } from "../request/redact.ts";
import { scrubber } from "../request/secrets.ts";
import type { CallsRoom } from "../room.ts";
import { beginAttempt, type Sendable } from "./begin.ts";
import { answered, failed, type AttemptEnd } from "./end.ts";
import { adviceAfter } from "./verdict.ts";

export async function sendCall(room: CallsRoom, engine: Engine, id: string, context: RunContext): Promise<unknown> {
  const { store, clock } = engine;
  const { settings, agents, heard, onFact } = room;
  const { job, signal } = context;
  const call = await readCall(store, job.tenant, id);
  const content = openContent(room, call);
  const mark = markWith(settings.keys, job.tenant);
  const scrub = scrubber(content);
  const outgoing = outgoingOf(content, call, clock.now());
  // It was redacted when it was submitted.
  const { url, body } = JSON.parse(call.request) as ShownRequest;
  const headers = JSON.stringify(shownHeaders(outgoing.headers, mark));
  const allow = settings.allowFor(job.tenant);
  const dispatcher = await agents.for(allow);
  await beginAttempt(store, job, call, { shown: { url, headers, body }, onFact });
  killPoint("calls.begun");

  const policy = JSON.parse(call.policy) as CallPolicy;
  const phases: Phases = { dnsMs: null, connectMs: null, tlsMs: null };
  const began = clock.monotonic();
  const timing = (): { phases: Phases; totalMs: number } => ({
    phases: { ...phases },
    totalMs: clock.monotonic() - began,
  });
  let end: AttemptEnd;
  try {
    const answer = await exchange(outgoing, {
      ...{ dispatcher, allow, ports: settings.ports, clock, signal, phases },
      ...{ redirects: policy.redirects, bytesMax: settings.responseBytesMax },
    });
    killPoint("calls.answered");
    end = answered(answer, scrub, mark, timing());
  } catch (error) {
    const reason = reasonOf(error);
    if (reason !== undefined) callRefused.state({ tenant: job.tenant, id, host: call.host, reason });
    end = failed(failureOf(error, signal, call.host), scrub, timing());
  }
  keep(heard, job.runId, end);
  if (end.errorKind === null) return { status: end.status };
  const { method, host } = call;
  const problem = new Error(`${method} ${host}: ${end.errorMessage ?? end.errorKind}`);
  problem.name = "CallFailed";
  throw advise(problem, adviceAfter(end, clock.now()));
}

// The end of a run that was taken from us is never asked for, so the oldest make room.
const heardMax = 10_000;

function keep(heard: Map<string, AttemptEnd>, runId: string, end: AttemptEnd): void {
  if (heard.size >= heardMax) for (const oldest of heard.keys()) if (heard.delete(oldest)) break;
  heard.set(runId, end);
}

async function readCall(store: Store, tenant: string, id: string): Promise<Sendable> {
  const [call] =
    await store.read<Sendable>(sql`select tenant_id, id, name, method, host, correlation_id, due_at, request,
      content, key_id, policy, send_key from call where tenant_id = ${tenant} and id = ${id}`);
  if (call !== undefined) return call;
  throw advise(new DaybookError("not_found", `there is no call ${id}: it was deleted`), { again: false });
}

const askAgainMs = 60_000;

function openContent({ settings: { keys } }: CallsRoom, call: Sendable): RequestContent {
  if (call.key_id === null) return JSON.parse(call.content) as RequestContent;
  try {
    if (keys !== undefined) return JSON.parse(keys.open(call.content, sealedFor(call.tenant_id, call.id))) as never;
  } catch (error) {
    if (!isDaybookError(error) || error.code !== "unavailable") throw advise(error as Error, { again: false });
  }
  // Another process may have the key, so it is neither sent nor failed.
  const missing = `call ${call.id} is sealed with key ${call.key_id}, which this process does not have`;
  throw advise(new DaybookError("unavailable", missing), { counts: false, atLeastMs: askAgainMs });
}

function outgoingOf(content: RequestContent, call: Sendable, now: number): Outgoing {
  const { method, url, secrets } = content;
  const body = content.body === null ? null : Buffer.from(content.body, content.base64 ? "base64" : "utf8");
  const timestamp = Math.floor(now / 1000);
  const signed =
    secrets.length === 0
      ? {}
      : signatureHeaders({ id: call.send_key, timestamp, body: body ?? Buffer.alloc(0), secrets });
  return {
    ...{ method, url: new URL(url), body },
    headers: {
      ...{ accept: "*/*", "accept-encoding": "identity", "user-agent": "daybook", "idempotency-key": call.send_key },
      ...content.headers,
      ...signed,
    },
  };
}
