// SQLite says, while it compiles a statement, all that the statement would do: through quotes, views, triggers and whatever its
// text hides. So a user's own statements are refused exactly where they would change one of Daybook's tables.
import { constants, type DatabaseSync } from "node:sqlite";
import { notYours } from "../user-sql.ts";

export type Authorizer = {
  /** Compiles and runs a user's statement; throws when it would change what is Daybook's. */
  ofUser<T>(text: string, run: () => T): T;
};

const writes = new Set([constants.SQLITE_INSERT, constants.SQLITE_UPDATE, constants.SQLITE_DELETE]);
/** The name of what is made or dropped comes first, and the table that it is on, if it is on one, second. */
const makes: ReadonlySet<number> = new Set(
  Object.entries(constants).flatMap(([name, code]) => (/^SQLITE_(?:CREATE|DROP|ALTER)_/.test(name) ? code : [])),
);

/** Made when the first user's statement comes: what was prepared before is compiled again, once. */
export function authorize(db: DatabaseSync): Authorizer {
  let isUsers = false;
  let denied: string | undefined;

  db.setAuthorizer((action, first, second) => {
    if (!isUsers) return constants.SQLITE_OK;
    const named = writes.has(action) ? [first] : makes.has(action) ? [first, second] : [];
    denied ??= named.find((name) => name?.toLowerCase().startsWith("daybook_")) ?? undefined;
    return denied === undefined ? constants.SQLITE_OK : constants.SQLITE_DENY;
  });
  return {
    ofUser(text, run) {
      isUsers = true;
      denied = undefined;
      try {
        return run();
      } catch (error) {
        throw denied === undefined ? error : notYours(denied, text);
      } finally {
        isUsers = false;
      }
    },
  };
}
