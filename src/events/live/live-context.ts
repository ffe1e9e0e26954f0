// What a live handler is given besides the payload, as far as this room knows it; the front door adds the book.
import type { DaybookError } from "../../core/error.ts";
import type { Clock } from "../../core/clock.ts";
import { limits } from "../../core/limits.ts";
import { checkLevel, toLogLine, type LogLevel } from "../../telemetry/log.ts";
import type { RunWriter } from "../../telemetry/run-writer.ts";
import type { LiveEvent } from "./live-event.ts";

type Run = { readonly runId: string; readonly name: string; readonly tenant: string; readonly event: LiveEvent };

/** One is made for every run, so what most handlers never ask for is made when it is asked for. What it hands out are
 *  functions of their own, so that a handler may take it apart: `(payload, { log, signal }) => …`. */
export class LiveContext {
  readonly #parts: { readonly clock: Clock; readonly writer: RunWriter };
  readonly #run: Run;
  #controller: AbortController | undefined;
  #reason: DaybookError | undefined;
  #logged = 0;

  constructor(parts: { readonly clock: Clock; readonly writer: RunWriter }, run: Run) {
    this.#parts = parts;
    this.#run = run;
  }

  get event(): LiveEvent {
    return this.#run.event;
  }

  get listener(): string {
    return this.#run.name;
  }

  get runId(): string {
    return this.#run.runId;
  }

  get tenant(): string {
    return this.#run.tenant;
  }

  /** Always 1: a live run is not tried again. */
  get attempt(): number {
    return 1;
  }

  /** Aborted when the run should end: its timeout, a newer event in mode `restart`, or because the book closes. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController();
    if (this.#reason !== undefined) this.#controller.abort(this.#reason);
    return this.#controller.signal;
  }

  /** A line that is kept with the run. */
  get log(): (message: string, fields?: Record<string, unknown>, level?: LogLevel) => void {
    return (message, fields, level = "info") => {
      checkLevel(level, "log level");
      if (this.#logged++ >= limits.logLinesMax) return;
      const { clock, writer } = this.#parts;
      const { tenant: tenant_id, runId: run_id } = this.#run;
      writer.log({ tenant_id, run_id, logged_at: clock.now(), ...toLogLine(message, fields, level) });
    };
  }

  abort(reason: DaybookError): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}
