// What is noted with a commit: who made it, why, and whatever else.
import { invalid } from "../core/error.ts";
import { toJson } from "../core/json.ts";
import { limits } from "../core/limits.ts";
import { checkKey } from "../core/name.ts";

export type CommitNotes = {
  /** Who: a user, a program. */
  readonly actor?: string;
  /** Why, for people. */
  readonly reason?: string;
  /** Any JSON object. */
  readonly metadata?: Record<string, unknown>;
};

export const noteNames = ["actor", "reason", "metadata"] as const;

/** Later notes of the same unit replace earlier ones, field by field. */
export function addNotes(notes: CommitNotes, { actor, reason, metadata }: CommitNotes): CommitNotes {
  if (actor !== undefined) checkKey(actor, "actor");
  if (reason !== undefined) checkReason(reason);
  if (metadata !== undefined) checkMetadata(metadata);
  return {
    ...notes,
    ...(actor === undefined ? {} : { actor }),
    ...(reason === undefined ? {} : { reason }),
    ...(metadata === undefined ? {} : { metadata }),
  };
}

function checkReason(reason: unknown): void {
  if (typeof reason !== "string") throw invalid("the reason of a commit is a text");
  const bytes = Buffer.byteLength(reason);
  if (bytes > limits.commitReasonBytesMax) {
    throw invalid(`the reason of a commit is ${bytes} bytes long: at most ${limits.commitReasonBytesMax}`);
  }
  if (!reason.isWellFormed() || reason.includes("\0")) throw invalid("the reason has a lone surrogate or U+0000");
}

function checkMetadata(metadata: unknown): void {
  if (typeof metadata !== "object" || metadata === null || Array.isArray(metadata)) {
    throw invalid("the metadata of a commit is an object, such as { ticket: 17 }");
  }
  toJson(metadata, { what: "metadata" });
}
