// How long retries wait, as a field: a list of waits, or a formula as an object.
import type { Backoff } from "../index.ts";
import { checkBackoff } from "../core/retry.ts";
import { toJson } from "../core/json.ts";
import { parseJson } from "../core/parse-json.ts";
import { limits } from "../core/limits.ts";
import { duration, type Field } from "./field.ts";

/** On a command line `10s,1m,10m`, or the formula as JSON. */
export function backoff(about: string): Field<Backoff, false> {
  return {
    kind: "text",
    maybe: false,
    about,
    metavar: "list",
    schema: {
      anyOf: [
        { type: "array", items: duration("").schema, minItems: 1, maxItems: limits.backoffStepsMax },
        formulaSchema,
      ],
      description: about,
    },
    check(value, what) {
      // Only what is plain JSON: a Map has no properties, and would pass for a formula of defaults.
      toJson(value, { what });
      checkBackoff(value as Backoff);
    },
    fromText: (given, what) =>
      given.startsWith("{") ? parseJson(given, { what }) : given.split(",").map((each) => each.trim()),
  };
}

const formulaSchema = {
  type: "object",
  properties: {
    base: duration("").schema,
    factor: { type: "number", minimum: 1, maximum: 100 },
    max: duration("").schema,
    spread: { type: "number", minimum: 0, maximum: 1 },
  },
  additionalProperties: false,
};
