// The transaction that one unit sees on PostgreSQL. A statement that fails there ends the whole transaction; a user's
// unit may catch the error and go on, as it may on SQLite, so its statements run behind savepoints until its own part
// is over.
import type { Ids, Random } from "../../core/id.ts";
import type { Keep } from "../../core/remember.ts";
import { render, sql, type Query, type Sql } from "../sql.ts";
import { usedAfterEnd, type Tx } from "../store.ts";
import { send, type Answer, type Server, type Session } from "./connect.ts";
import { isConflictingTransaction, isConnectionLost } from "./postgres-error.ts";

// What a serializable transaction has read, others may not write without a conflict, and a scan reads all that it passes by. So
// each row of the engine is found by its index, however small the table is; such plans have names of their own.
// One statement sets all of it, because four would cost each finish as much as its own insert.
const planNarrow = sql`select pg_catalog.set_config('plan_cache_mode', 'force_generic_plan', true),
  pg_catalog.set_config('enable_seqscan', 'off', true), pg_catalog.set_config('enable_hashjoin', 'off', true),
  pg_catalog.set_config('enable_mergejoin', 'off', true)`;

type At = { now: number; tenant: string; ids: Ids; random: Random; keep: Keep };

type Options = {
  /** The unit may catch the failure of a statement and go on. */
  readonly forgiving: boolean;
  /** Called before each statement. */
  readonly begin?: () => void;
  /** Undoes a transaction in which nothing but its first statement has happened, and begins another. */
  readonly beginAnew?: () => Promise<unknown>;
};

export class PostgresTx implements Tx {
  readonly dialect = "postgres";
  readonly tenant: string;
  readonly now: number;
  readonly ids: Ids;
  readonly random: Random;
  readonly keep: Keep;
  readonly channels: Set<string> = new Set();
  readonly committed: (() => void)[] = [];
  /** What the unit said it competes for. */
  competesFor: string | undefined;
  /** A user's statement may have left something behind in the session. */
  leaves = false;
  /** The error that doomed the transaction, whether or not the unit noticed. */
  doomed: unknown;
  readonly #session: Session;
  readonly #server: Server;
  #forgiving: boolean;
  #narrow = false;
  readonly #begin: () => void;
  readonly #beginAnew: () => Promise<unknown>;
  #turn: Promise<void> = Promise.resolve();
  #ended = false;
  /** Nothing has happened yet in the transaction. */
  #alone: boolean;

  constructor(session: Session, server: Server, at: At, options: Options) {
    this.#session = session;
    this.#server = server;
    this.#forgiving = options.forgiving;
    this.#begin = options.begin ?? (() => undefined);
    this.#beginAnew = options.beginAnew ?? (async () => undefined);
    this.#alone = options.beginAnew !== undefined;
    this.now = at.now;
    this.tenant = at.tenant;
    this.ids = at.ids;
    this.random = at.random;
    this.keep = at.keep;
  }

  async all<R>(statement: Sql): Promise<R[]> {
    return (await this.#send(statement)).rows as R[];
  }

  async get<R>(statement: Sql): Promise<R | undefined> {
    return (await this.#send(statement)).rows[0] as R | undefined;
  }

  async run(statement: Sql): Promise<number> {
    return (await this.#send(statement)).count;
  }

  wake(channel: string): void {
    this.channels.add(channel);
  }

  compete(name: string): void {
    this.competesFor = name;
  }

  afterCommit(run: () => void): void {
    this.committed.push(run);
  }

  async userDone(): Promise<void> {
    if (!this.#forgiving) return;
    await this.#turn;
    this.#forgiving = false;
    this.#narrow = true;
    this.#begin();
    // Not awaited: it leaves with the first of them.
    this.#sendPlain(render(planNarrow, "postgres")).catch((error: unknown) => (this.doomed ??= error));
  }

  end(): void {
    this.#ended = true;
  }

  /** Resolves once nothing of this unit is on the wire: only then may others use the connection. */
  idle(): Promise<void> {
    return this.#turn;
  }

  async #send(statement: Sql): Promise<Answer> {
    if (this.#ended) throw usedAfterEnd();
    const query = render(statement, "postgres");
    if (query.user?.leaves === true) this.leaves = true;
    this.#begin();
    try {
      return this.#forgiving ? await this.#sendBehindSavepoint(query) : await this.#sendPlain(query);
    } catch (error) {
      const fatal = !this.#forgiving || isConflictingTransaction(error) || isConnectionLost(error);
      if (fatal) this.doomed ??= error;
      throw error;
    }
  }

  // One after the other, also when the unit starts several at once: savepoints nest, and one that fails would otherwise
  // take down those that were begun after it, and with them the transaction.
  async #sendBehindSavepoint(query: Query): Promise<Answer> {
    const { promise, resolve: done } = Promise.withResolvers<void>();
    const turn = this.#turn;
    this.#turn = promise;
    try {
      await turn;
      if (this.#ended) throw usedAfterEnd();
      return await (this.#alone ? this.#sendFirst(query) : this.#sendThree(query));
    } finally {
      done();
    }
  }

  // There is nothing before it to keep, so it needs no savepoint; and many units have no second one.
  async #sendFirst(query: Query): Promise<Answer> {
    try {
      const answer = await this.#sendPlain(query);
      this.#alone = false;
      return answer;
    } catch (error) {
      await this.#beginAnew();
      throw error;
    }
  }

  // All three are on the wire together, so they cost one round trip. Behind a statement that failed the release fails, too.
  async #sendThree(query: Query): Promise<Answer> {
    const begun = this.#control("savepoint unit");
    const answer = this.#sendPlain(query);
    const released = this.#control("release savepoint unit");
    const [result, , whole] = await Promise.all([settled(answer), begun, released]);
    if (!whole)
      await Promise.all([this.#control("rollback to savepoint unit"), this.#control("release savepoint unit")]);
    return result();
  }

  #sendPlain(query: Query): Promise<Answer> {
    // A user's texts are unbounded in number, so they are not kept as prepared statements.
    return send(this.#session, query, this.#server, this.#narrow ? "narrow" : !this.#forgiving);
  }

  // Whether it was done. Else the statement failed or the connection is gone, and the statement itself reports that.
  #control(text: string): Promise<boolean> {
    return this.#session.query(text).then(
      () => true,
      () => false,
    );
  }
}

/** Waits for the end of it without failing; what it gives does. */
function settled<T>(promise: Promise<T>): Promise<() => T> {
  return promise.then(
    (value) => () => value,
    (error: unknown) => () => {
      throw error;
    },
  );
}
