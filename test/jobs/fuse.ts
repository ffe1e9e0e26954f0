// Lets a verb fail at each of its statements in turn, as a full disk or a broken connection would.
import assert from "node:assert/strict";
import type { Fault } from "../../src/storage/sqlite/connection.ts";
import type { Backend } from "../support/open-test.ts";

export type Fuse = {
  readonly fault: Fault;
  /** Tries `verb` with its first statement failing, then its second, and so on until it gets through. After each failure
   *  `look` must give what it gave before. Returns how often it failed. */
  burn(verb: () => Promise<unknown>, look: () => Promise<unknown>): Promise<number>;
};

const tries = 200;
const control = /^\s*(?:begin|commit|rollback|savepoint|release|pragma|set|start|listen|notify)\b/i;

export function createFuse(backend: Backend): Fuse {
  let left = Number.POSITIVE_INFINITY;
  return {
    fault(moment, text) {
      if (moment !== "before" || control.test(text)) return;
      left--;
      // SQLite runs a unit whose group failed again, alone: that must not get through unnoticed, so from there on all fail.
      if (backend === "sqlite" ? left > 0 : left !== 0) return;
      // PostgreSQL's own word for a full disk; an error without a code would be a lost connection, and the unit run again.
      throw Object.assign(new Error(`the fuse blew at: ${text}`), backend === "postgres" ? { code: "53100" } : {});
    },
    async burn(verb, look) {
      const before = await look();
      for (let statement = 1; statement < tries; statement++) {
        left = statement;
        const failure = await verb().then(
          () => undefined,
          (error: unknown) => String(error),
        );
        left = Number.POSITIVE_INFINITY;
        if (failure === undefined) return statement - 1;
        assert.deepEqual(await look(), before, `by half, statement ${statement}: ${failure}`);
      }
      throw new Error(`it failed ${tries} times`);
    },
  };
}
