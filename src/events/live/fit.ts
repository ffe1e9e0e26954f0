// A listener that names an event's definition is given the payload as that event's schema gives it back, as a durable
// one is. Most schemas answer at once; behind one that does not, later events wait, so that the order stays.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { describeError } from "../../core/error.ts";
import { fittingPayload } from "../prepare.ts";
import type { LiveDefinition } from "./define.ts";
import type { LiveEvent } from "./live-event.ts";

export type Fit = (event: LiveEvent) => void;

export type FitParts = {
  pass(event: LiveEvent): void;
  fail(event: LiveEvent, error: Error): void;
  tooBusy(): void;
};

export function createFit(definition: LiveDefinition, { pass, fail, tooBusy }: FitParts): Fit {
  const schemas = new Map(definition.events.map(({ topic, schema }) => [topic, schema]));
  let line: Promise<void> | undefined;
  let inLine = 0;

  function finish(event: LiveEvent, result: StandardSchemaV1.Result<unknown>): void {
    let payload;
    try {
      payload = fittingPayload(event.topic, result);
    } catch (error) {
      return fail(event, unfit(error));
    }
    pass({ ...event, payload });
  }

  function wait(event: LiveEvent, answer: Promise<StandardSchemaV1.Result<unknown>> | undefined): void {
    // It fails when its turn comes, and not before.
    answer?.catch(() => undefined);
    if (inLine >= definition.backlog) return tooBusy();
    inLine += 1;
    const turn = (line ?? Promise.resolve()).then(async () => {
      try {
        if (answer === undefined) pass(event);
        else finish(event, await answer);
      } catch (error) {
        fail(event, unfit(error));
      }
      inLine -= 1;
      if (inLine === 0) line = undefined;
    });
    line = turn;
  }

  return (event) => {
    const schema = schemas.get(event.topic);
    if (schema === undefined) return line === undefined ? pass(event) : wait(event, undefined);
    let result;
    try {
      result = schema["~standard"].validate(event.payload);
    } catch (error) {
      return fail(event, unfit(error));
    }
    if (result instanceof Promise) wait(event, result);
    else if (line === undefined) finish(event, result);
    else wait(event, Promise.resolve(result));
  };
}

function unfit(cause: unknown): Error {
  const error = new Error(describeError(cause).message, { cause });
  error.name = "DependencyError";
  return error;
}
