// daybook records history, diff and traverse: how things came to be, and what they are connected with.
import type { Command } from "commander";
import { invalid } from "../../core/error.ts";
import { isoTime } from "../../core/time.ts";
import type { AnyRelation } from "../../records/define/definition.ts";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { readKey, readMoment, showKey } from "../record-words.ts";
import { plainCell, showTable, timeCell } from "../show.ts";
import { wholeNumber } from "../whole-number.ts";
import { looking, withBook } from "../with-book.ts";

type TraverseOptions = {
  readonly via: string[];
  readonly direction?: string;
  readonly hops: number;
  readonly asOf?: string;
};

export function lookBack(group: Command): void {
  const history = group
    .command("history")
    .description("list everything that happened to one record, the oldest first")
    .argument("<type>", "the name of the type")
    .argument("<key...>", "its key; of a relation: from, to and, if it has one, its instance");
  addPageOptions(history).action((name: string, key: string[], { limit, after }: PageOptions) =>
    withBook(history, looking, async (book) => {
      const type = await book.records.type(name);
      const page = { limit, ...(after === undefined ? {} : { after: wholeNumber("--after")(after) }) };
      const { items, next } = await book.records.history(type, readKey(type, key), page);
      return {
        json: { items: items.map((each) => ({ ...each, at: isoTime(each.at) })), next },
        text: async () => {
          if (items.length === 0) return "There never was such a record.";
          const rows = items.map(({ kind, commit, at, actor, revision, value }) => [
            ...[kind, String(commit), String(revision), timeCell(at), plainCell(actor ?? "")],
            value === null ? "" : plainCell(JSON.stringify(value)),
          ]);
          const table = await showTable(["what", "commit", "revision", "when", "who", "document"], rows);
          return [table, ...nextPage(history, next === null ? null : String(next))].join("\n");
        },
      };
    }),
  );
  const diff = group
    .command("diff")
    .description("list what is different at one moment from another")
    .argument("<from>", "a commit (its number, 0 before the first) or a time")
    .argument("<to>", "a commit or a time")
    .option("--type <name>", "only records of this type");
  addPageOptions(diff).action((from: string, to: string, { type, ...page }: PageOptions & { type?: string }) =>
    withBook(diff, looking, async (book) => {
      const only = type === undefined ? {} : { type: await book.records.type(type) };
      const { items, next } = await book.records.diff(readMoment(from), readMoment(to), { ...page, ...only });
      return {
        json: { items, next },
        text: async () => {
          if (items.length === 0) return "Nothing is different.";
          const rows = items.map(({ type: name, key, kind, before, after }) => [
            ...[kind, name, showKey(key)],
            plainCell(before === null ? "" : JSON.stringify(before), 40),
            plainCell(after === null ? "" : JSON.stringify(after), 40),
          ]);
          return [await showTable(["what", "type", "key", "before", "after"], rows), ...nextPage(diff, next)].join(
            "\n",
          );
        },
      };
    }),
  );
  const traverse = group
    .command("traverse")
    .description("list the records that one is connected with, each by a shortest path")
    .argument("<type>", "the name of the entity to begin at")
    .argument("<key>", "its key")
    .requiredOption("--via <relation...>", "the relations to follow")
    .option("--direction <way>", "out (from from to to), in, or both", "out")
    .option("--hops <n>", "how far to go", wholeNumber("--hops"), 1)
    .option("--as-of <moment>", "as it was known at a commit (its number) or a time");
  traverse.action((name: string, key: string, { via, direction, hops, asOf }: TraverseOptions) =>
    withBook(traverse, looking, async (book) => {
      const type = await book.records.type(name);
      if (type.kind !== "entity") throw invalid(`"${name}" is a relation: begin at an entity`);
      const relations = await Promise.all(via.map((each) => book.records.type(each)));
      const found = await book.records.traverse(type, key, {
        via: relations as AnyRelation[],
        direction: direction as "out",
        hops,
        ...(asOf === undefined ? {} : { asOf: readMoment(asOf) }),
      });
      const words = (each: (typeof found)[number]): string =>
        each.path
          .map((hop) => (hop.direction === "out" ? `–${hop.relation}→ ${hop.to}` : `←${hop.relation}– ${hop.from}`))
          .join(" ");
      return {
        json: { items: found },
        text: () =>
          found.length === 0
            ? "It is connected with nothing."
            : showTable(
                ["type", "key", "hops", "path"],
                found.map((each) => [
                  each.type,
                  plainCell(each.key),
                  String(each.hops),
                  plainCell(`${key} ${words(each)}`, 120),
                ]),
              ),
      };
    }),
  );
}
