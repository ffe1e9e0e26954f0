// What a supervisor and a monitor ask: whether the process lives, whether it can serve, and its numbers.
import type { Book } from "../book/book.ts";
import { DaybookError } from "../core/error.ts";
import { roomsOf } from "../open/rooms.ts";
import { sql } from "../storage/sql.ts";
import type { Router } from "./book-routes.ts";
import type { Gate } from "./gate.ts";
import { headersOfAll } from "./guard.ts";
import type { OpenStreams } from "./open-streams.ts";
import type { Scheduler } from "./scheduler.ts";

type Parts = {
  readonly book: Book;
  readonly streams: OpenStreams;
  readonly scheduler: Scheduler;
  readonly prefix: string;
  readonly gate: Gate;
};

export function addMonitoring(router: Router, { book, streams, scheduler, prefix, gate }: Parts): void {
  const headers = { ...headersOfAll, "cache-control": "no-store" };

  router.get(`${prefix}/health/live`, () => Response.json({ status: "live" }, { headers }));

  router.get(`${prefix}/health/ready`, async () => {
    try {
      await roomsOf(book).store.read(sql`select 1 as one`);
    } catch {
      throw new DaybookError("unavailable", "the book cannot be read");
    }
    return Response.json({ status: "ready" }, { headers });
  });

  router.get(`${prefix}/metrics`, async (context) => {
    const found = await gate.admit(context, { role: "read", words: "metrics" });
    const own = [
      "# HELP daybook_server_streams Streams that are open on this server",
      "# TYPE daybook_server_streams gauge",
      `daybook_server_streams ${streams.count}`,
      "# HELP daybook_server_working Whether this server runs jobs",
      "# TYPE daybook_server_working gauge",
      `daybook_server_working ${scheduler.status().status === "running" ? 1 : 0}`,
    ];
    const text = `${await gate.bookFor({}, found).metrics()}${own.join("\n")}\n`;
    return new Response(text, { headers: { ...headers, "content-type": "text/plain; version=0.0.4; charset=utf-8" } });
  });
}
