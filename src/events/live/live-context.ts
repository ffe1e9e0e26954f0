// What a live handler is given besides the payload, as far as this room knows it; the front door adds the book.
import { invalid, type DaybookError } from "../../core/error.ts";
import type { Clock } from "../../core/clock.ts";
import { toJson } from "../../core/json.ts";
import { limits } from "../../core/limits.ts";
import { quote } from "../../core/quote.ts";
import { storableText } from "../../core/storable-text.ts";
import { logLevels, type LogLevel } from "../../telemetry/log.ts";
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
      if (!logLevels.includes(level)) throw invalid(`log level ${quote(level)} is not known: ${logLevels.join(", ")}`);
      if (this.#logged++ >= limits.logLinesMax) return;
      const { clock, writer } = this.#parts;
      writer.log({
        tenant_id: this.#run.tenant,
        run_id: this.#run.runId,
        logged_at: clock.now(),
        level,
        message: storableText(String(message), limits.logLineBytesMax),
        fields: fields === undefined ? null : toJson(fields, { what: "log fields", bytesMax: limits.logLineBytesMax }),
      });
    };
  }

  abort(reason: DaybookError): void {
    this.#reason = reason;
    this.#controller?.abort(reason);
  }
}
