// The transaction that one unit sees. It dies with its unit, and at once when SQLite ended the transaction under it:
// a statement after that would commit by itself.
import type { Ids } from "../../core/id.ts";
import type { Random } from "../../core/random.ts";
import type { Keep } from "../keep.ts";
import { render, type Sql } from "../sql.ts";
import type { Tx } from "../store.ts";
import { usedAfterEnd } from "../unit.ts";
import type { Connection } from "./connection.ts";

export class SqliteTx implements Tx {
  readonly dialect = "sqlite";
  readonly tenant: string;
  readonly now: number;
  readonly ids: Ids;
  readonly random: Random;
  readonly keep: Keep;
  /** Made when they are first needed: most units wake nobody, and one of these is made for every unit. */
  channels: Set<string> | undefined;
  committed: (() => void)[] | undefined;
  /** The error with which SQLite ended the transaction, whether or not the unit noticed. */
  endedBy: unknown;
  readonly #connection: Connection;
  #ended = false;

  constructor(connection: Connection, at: { now: number; tenant: string; ids: Ids; random: Random; keep: Keep }) {
    this.#connection = connection;
    this.now = at.now;
    this.tenant = at.tenant;
    this.ids = at.ids;
    this.random = at.random;
    this.keep = at.keep;
  }

  all<R>(statement: Sql): R[] {
    return this.#use(() => this.#connection.all(render(statement, "sqlite")) as R[]);
  }

  get<R>(statement: Sql): R | undefined {
    return this.#use(() => this.#connection.get(render(statement, "sqlite")) as R | undefined);
  }

  // Written out, because it is the hottest of the three and a closure for each statement shows.
  run(statement: Sql): number {
    if (this.#ended) throw usedAfterEnd();
    try {
      return this.#connection.run(render(statement, "sqlite"));
    } catch (error) {
      throw this.#noteEnd(error);
    }
  }

  wake(channel: string): void {
    (this.channels ??= new Set()).add(channel);
  }

  compete(_name: string): void {
    // There is one writer, and this unit is it.
  }

  userDone(): void {
    // Savepoints cost nothing here, and nobody else writes.
  }

  afterCommit(run: () => void): void {
    (this.committed ??= []).push(run);
  }

  end(): void {
    this.#ended = true;
  }

  #use<T>(run: () => T): T {
    if (this.#ended) throw usedAfterEnd();
    try {
      return run();
    } catch (error) {
      throw this.#noteEnd(error);
    }
  }

  #noteEnd(error: unknown): unknown {
    if (!this.#connection.inTransaction) {
      this.#ended = true;
      this.endedBy ??= error;
    }
    return error;
  }
}
