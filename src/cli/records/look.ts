// daybook records types, list, get and as-of: what is known, now or then.
import type { Command } from "commander";
import type { Book } from "../../book/book.ts";
import type { AsOf } from "../../records/moment.ts";
import { checkCondition } from "../../records/query/condition.ts";
import type { Answer } from "../answer.ts";
import { addPageOptions, nextPage, type PageOptions } from "../page.ts";
import { entryTable, readFilters, readKey, readMoment, readPlace } from "../record-words.ts";
import { showJson, showTable } from "../show.ts";
import { looking, withBook } from "../with-book.ts";

type ListOptions = PageOptions & {
  readonly filter?: string[];
  readonly order?: string;
  readonly desc?: true;
  readonly asOf?: string;
};

const listExample = `
A path is names with dots between them (address.city), a JSON list of names where one has a
dot itself, from:… and to:… for the endpoints of a relation, or @key, @from, @to, @instance.
Words: eq ne lt lte gt gte in notIn startsWith endsWith contains isNull isNotNull. The value
is JSON. Several filters must all hold.

Example:
  $ daybook records list --book shop.db order --filter status eq '"paid"' --filter total gte 40
  $ daybook records list --book shop.db placed --filter from:country eq '"NO"'`;

export function lookAtRecords(group: Command): void {
  const types = group
    .command("types")
    .description("list the types of which something was ever written")
    .action(() => withBook(types, looking, listTypes));
  const list = group
    .command("list")
    .description("list the records of a type")
    .argument("<type>", "the name of the type");
  addFilterOptions(list)
    .option("--as-of <moment>", "as it was known at a commit (its number) or a time")
    .addHelpText("after", listExample)
    .action((name: string, options: ListOptions) =>
      withBook(list, looking, (book) => listRecords(list, book, name, options, options.asOf)),
    );
  const asOf = group
    .command("as-of")
    .description("list the records of a type as they were known at a moment")
    .argument("<moment>", "a commit (its number) or a time")
    .argument("<type>", "the name of the type");
  addFilterOptions(asOf).action((moment: string, name: string, options: ListOptions) =>
    withBook(asOf, looking, (book) => listRecords(asOf, book, name, options, moment)),
  );
  const get = group
    .command("get")
    .description("print one record: its document, its revision and its commit")
    .argument("<type>", "the name of the type")
    .argument("<key...>", "its key; of a relation: from, to and, if it has one, its instance")
    .option("--as-of <moment>", "as it was known at a commit (its number) or a time")
    .action((name: string, key: string[], { asOf: moment }: { asOf?: string }) =>
      withBook(get, looking, async (book) => {
        const type = await book.records.type(name);
        const at = readKey(type, key) as never;
        const options = moment === undefined ? {} : { asOf: readMoment(moment) };
        const entry = await book.records.entry(type, at, options);
        // Says that there is none in the library's words.
        if (entry === undefined) await book.records.get(type, at, options);
        return { json: entry, text: () => showJson(entry) };
      }),
    );
}

function addFilterOptions(command: Command): Command {
  return addPageOptions(
    command
      .option("--filter <path op json...>", "only records for which this holds")
      .option("--order <path>", "order by this field, then by key (default: by key)")
      .option("--desc", "order downwards"),
  );
}

async function listTypes(book: Book): Promise<Answer> {
  const types = await book.records.types();
  return {
    json: { items: types },
    text: () =>
      types.length === 0
        ? "No record was ever written."
        : showTable(
            ["type", "kind", "from", "to", "schema", "records"],
            types.map(({ name, kind, from, to, schemaVersion, records }) => [
              name,
              kind,
              from ?? "",
              to ?? "",
              String(schemaVersion),
              String(records),
            ]),
          ),
  };
}

async function listRecords(
  command: Command,
  book: Book,
  name: string,
  options: ListOptions,
  moment?: string,
): Promise<Answer> {
  let query = book.records.query(await book.records.type(name)).limit(options.limit);
  for (const condition of readFilters(options.filter ?? [])) query = query.where(checkCondition(condition));
  const { order } = options;
  if (order !== undefined)
    query = query.orderBy(() => ({ at: readPlace(order) }), options.desc === true ? "desc" : "asc");
  if (moment !== undefined) query = query.asOf(readMoment(moment) satisfies AsOf);
  if (options.after !== undefined) query = query.after(options.after);
  const { items, next } = await query.list();
  return {
    json: { items, next },
    text: async () =>
      items.length === 0
        ? "There are no such records."
        : [await entryTable(items), ...nextPage(command, next)].join("\n"),
  };
}
