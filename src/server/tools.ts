// /mcp: assistants call the verbs as tools, with a token of the book like everybody else. What they change stands in the audit too.
import type { Access } from "../access/access.ts";
import type { Book } from "../book/book.ts";
import type { Caller } from "../access/caller.ts";
import type { Logger } from "../open/log.ts";
import type { Router } from "./book-routes.ts";
import type { Gate } from "./gate.ts";
import { mcpHandler } from "./mcp.ts";
import type { Allow } from "./mcp/tool.ts";
import { tellFailure } from "./problem.ts";
import { runAudited } from "./run-audited.ts";

type Parts = {
  readonly gate: Gate;
  readonly access: Access;
  readonly prefix: string;
  /** What tools may do at most. */
  readonly allow: Allow;
  readonly log: Logger | undefined;
};

type ToolCaller = Caller & {
  readonly book: (of: { of?: "book" }) => Book;
  readonly requestId: string;
  readonly from: string;
};

export function addTools(router: Router, { gate, access, prefix, allow, log }: Parts): void {
  let making: ReturnType<typeof mcpHandler<ToolCaller>> | undefined;
  const make = (): ReturnType<typeof mcpHandler<ToolCaller>> =>
    mcpHandler<ToolCaller>({
      allow,
      onDefect: (error) => tellFailure(log, error, "mcp"),
      run: ({ key, verb, input, signal, caller }) => {
        const { book, requestId, from } = caller;
        const calling = {
          key,
          verb,
          access,
          caller,
          requestId,
          from,
          book: book(verb.of === "book" ? { of: "book" } : {}),
        };
        return runAudited(calling, input, { signal, tenant: caller.tenant });
      },
    });

  router.all(`${prefix}/mcp`, async (context) => {
    const found = await gate.known(context);
    const { requestId, address: from } = context.env;
    // Loaded by the first assistant: the protocol's library takes its time.
    const handle = await (making ??= make());
    const book = (of: { of?: "book" }): Book => gate.bookFor(of, found);
    return handle(context.req.raw, { ...found.caller, tenant: found.tenant, book, requestId, from });
  });
}
