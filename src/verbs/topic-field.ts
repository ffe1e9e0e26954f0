// Topics as fields: one topic, or a pattern of them.
import { limits } from "../core/limits.ts";
import { checkPattern, checkTopic } from "../events/topic.ts";
import { text, type Field } from "./field.ts";

/** One topic, such as `order.paid`; wildcards are refused. */
export function topic(about: string): Field<string, false> {
  return checked(text(about, "topic", limits.topicBytesMax), checkTopic);
}

/** A topic, or a pattern with `*` and `>`. */
export function pattern(about: string): Field<string, false> {
  return checked(text(about, "pattern", limits.topicBytesMax), checkPattern);
}

function checked(of: Field<string, false>, check: (value: string, what: string) => string): Field<string, false> {
  return {
    ...of,
    check(value, what) {
      of.check(value, what);
      check(String(value), what);
    },
  };
}
