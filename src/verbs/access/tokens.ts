// tokens: who may use the book through a server.
import type { MadeToken, TokenRecord } from "../../index.ts";
import { invalid } from "../../core/error.ts";
import { limits } from "../../core/limits.ts";
import { duration, flag, id, list, maybe, text, word } from "../field.ts";
import { paged } from "../list.ts";
import { copied, fields, sentence, state, when, type Cell, type Part } from "../shown.ts";
import { admin, forAdmins } from "../verb.ts";

const roles = ["read", "operate", "admin", "worker"] as const;

export const tokens = {
  create: admin({
    words: "tokens create [name]",
    of: "book",
    about: "make a token for a program or a person, and show its secret this once",
    more: `A token is of one tenant (--for, or --tenant) or of the whole book. Its role is read (changes nothing), operate
(makes and steers work), admin (looks after the book) or worker (runs jobs from elsewhere; --queues and
--names say which). The book keeps a hash of the secret: who has lost it makes a new token.`,
    input: {
      name: maybe(text("what people call it (default: its id)", "name", limits.nameBytesMax)),
      for: maybe(text("the tenant that it is of", "tenant", limits.nameBytesMax)),
      wholeBook: maybe(flag("it is of the whole book, and of every tenant")),
      role: word("what it may do", roles),
      queues: maybe(list(text("a queue that a worker may take jobs of; may be given several times", "queue"))),
      names: maybe(list(text("a name of jobs that a worker may take; may be given several times", "name"))),
      expires: maybe(duration("how long it lasts (default: until it is revoked)", { min: 1 })),
    },
    examples: [
      "tokens create reports --for acme --role read --expires 90d",
      "tokens create --whole-book --role admin",
      "tokens create camera --for house --role worker --queues images",
    ],
    check({ for: tenant, wholeBook, role, queues, names }) {
      if (tenant !== undefined && wholeBook === true) throw invalid('give "for" or "wholeBook", not both');
      if (role !== "worker" && (queues ?? names) !== undefined) {
        throw invalid("queues and names are for tokens of workers: leave them out, or give the role worker");
      }
    },
    run(book, { for: given, wholeBook = false, ...options }, call): Promise<MadeToken> {
      const tenant = wholeBook ? null : (given ?? call.tenant);
      if (tenant === null && !wholeBook) {
        throw invalid('say whose it is: "for" names its tenant, and "wholeBook" (--whole-book) means all of them');
      }
      return book.tokens.create({ ...options, tenant });
    },
    show: ({ secret, ...made }) => [tokenPage(made), sentence("shown this once:", copied(secret))],
  }),

  list: forAdmins(
    paged({
      words: "tokens list",
      of: "book",
      about: "list the tokens that still let somebody in, the newest first",
      more: "When it was last used is known to about a minute. Nothing of a secret is shown, because nothing is kept.",
      input: {
        for: maybe(text("only those of this tenant", "tenant", limits.nameBytesMax)),
        all: maybe(flag("also those that were revoked or have expired")),
      },
      examples: ["tokens list", "tokens list --for acme --all"],
      find: (book, { for: tenant, ...filter }) =>
        book.tokens.list({ ...filter, ...(tenant === undefined ? {} : { tenant }) }),
      columns: {
        id: (each) => copied(each.id),
        name: (each) => each.name,
        of: ofWhom,
        role: (each) => each.role,
        made: (each) => when(each.createdAt),
        "last used": (each) => when(each.lastUsedAt),
        ends: endOf,
      },
      none: "There are no such tokens.",
      least: ["made", "last used"],
    }),
  ),

  revoke: admin({
    words: "tokens revoke <id>",
    of: "book",
    about: "revoke a token, so that it lets nobody in any more, and end the logins that it opened",
    more: "It holds here at once and in other processes within a second. A token that was revoked stays revoked.",
    input: { id: id("token") },
    examples: ["tokens revoke k3v9w2m8pq"],
    run: (book, input): Promise<TokenRecord> => book.tokens.revoke(input.id),
    show: (token) => tokenPage(token),
  }),
};

function tokenPage(token: TokenRecord): Part {
  return fields({
    id: copied(token.id),
    name: token.name,
    of: ofWhom(token),
    role: token.role,
    queues: token.queues?.join(", ") ?? null,
    names: token.names?.join(", ") ?? null,
    made: when(token.createdAt),
    "last used": when(token.lastUsedAt),
    ends: endOf(token),
  });
}

function ofWhom({ tenant }: TokenRecord): Cell {
  return tenant === null ? "the whole book" : copied(tenant);
}

function endOf({ revokedAt, expiresAt }: TokenRecord): Cell {
  return revokedAt === null ? when(expiresAt) : state("revoked");
}
