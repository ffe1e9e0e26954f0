// The transaction that one unit sees on PostgreSQL. A statement that fails there ends the whole transaction; a user's
// unit may catch the error and go on, as it may on SQLite, so its statements run behind savepoints.
import type { Ids } from "../../core/id.ts";
import type { Random } from "../../core/random.ts";
import { render, type Query, type Sql } from "../sql.ts";
import type { Tx } from "../store.ts";
import { usedAfterEnd } from "../unit.ts";
import { send, type Answer, type Server, type Session } from "./connect.ts";
import { isConflictingTransaction, isConnectionLost } from "./postgres-error.ts";

type At = { now: number; tenant: string; ids: Ids; random: Random };

export class PostgresTx implements Tx {
  readonly dialect = "postgres";
  readonly tenant: string;
  readonly now: number;
  readonly ids: Ids;
  readonly random: Random;
  readonly channels: Set<string> = new Set();
  readonly committed: (() => void)[] = [];
  /** What the unit said it competes for. */
  competesFor: string | undefined;
  /** The error that doomed the transaction, whether or not the unit noticed. */
  doomed: unknown;
  readonly #session: Session;
  readonly #server: Server;
  readonly #forgiving: boolean;
  readonly #begin: () => void;
  #turn: Promise<void> = Promise.resolve();
  #ended = false;

  constructor(session: Session, server: Server, at: At, options: { forgiving: boolean; begin?: () => void }) {
    this.#session = session;
    this.#server = server;
    this.#forgiving = options.forgiving;
    this.#begin = options.begin ?? (() => undefined);
    this.now = at.now;
    this.tenant = at.tenant;
    this.ids = at.ids;
    this.random = at.random;
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
      return await this.#sendThree(query);
    } finally {
      done();
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
    return send(this.#session, query, this.#server, !this.#forgiving);
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
