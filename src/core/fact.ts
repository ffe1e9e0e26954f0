import { channel } from "node:diagnostics_channel";
import { describeError } from "./error.ts";

/** Something that happened, with a name and fields. Rooms state facts; logs, metrics and tests hear them. */
export type Fact<Fields> = {
  readonly name: string;
  state(fields: Fields): void;
  /** Returns the function that ends the subscription. */
  subscribe(hear: (fields: Fields) => void): () => void;
  /** Whether anyone listens: ask before building fields that cost something. */
  readonly heard: boolean;
};

/**
 * A fact travels on the diagnostics channel `daybook:<name>`, so tools that know nothing of us can listen too, and
 * stating a fact that nobody hears costs one property read.
 */
export function defineFact<Fields extends object>(name: string): Fact<Fields> {
  const on = channel(`daybook:${name}`);
  return {
    name,
    get heard() {
      return on.hasSubscribers;
    },
    state(fields) {
      if (on.hasSubscribers) on.publish(fields);
    },
    subscribe(hear) {
      const safely = shielded(name, hear);
      on.subscribe(safely);
      return () => {
        on.unsubscribe(safely);
      };
    },
  };
}

/**
 * Telemetry never stops work: by default the channel turns a listener's exception into an uncaught one, which ends the
 * process. A failing listener warns once, since one that fails on every job would otherwise flood the log.
 */
function shielded<Fields>(name: string, hear: (fields: Fields) => void): (message: unknown) => void {
  let warned = false;
  const warn = (error: unknown): void => {
    if (warned) return;
    warned = true;
    const { message, trace } = describeError(error);
    process.emitWarning(`a listener of the fact "${name}" failed (further failures are not shown): ${message}`, {
      type: "DaybookWarning",
      code: "DAYBOOK_FACT_LISTENER",
      ...(trace === null ? {} : { detail: trace }),
    });
  };
  return (message) => {
    try {
      // The channel is named after the fact and only `state` publishes to it, so the fields have the fact's type.
      const result: unknown = hear(message as Fields);
      if (result instanceof Promise) result.catch(warn);
    } catch (error) {
      warn(error);
    }
  };
}
