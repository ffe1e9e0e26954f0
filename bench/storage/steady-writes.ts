// Started by bench/storage.ts: a process with nothing in it but a book and its callers, for the memory that takes.
import { open } from "../../src/index.ts";
import { noteBody } from "../harness/bare-sqlite.ts";
import { inFlight, measure } from "../harness/load.ts";

export type SteadyMemory = { readonly openMb: number; readonly writtenMb: number; readonly seconds: number };

const seconds = 4;
const rssMb = (): number => Math.round(process.memoryUsage.rss() / 2 ** 20);

const book = await open(process.argv[2] ?? "");
await book.write((tx) => tx.sql`create table note (id integer primary key, body text not null) strict`);
const openMb = rssMb();
const insert = (): Promise<unknown> => book.write((tx) => tx.sql`insert into note (body) values (${noteBody})`);
await measure(inFlight(100, insert), seconds * 1000);
const memory: SteadyMemory = { openMb, writtenMb: rssMb(), seconds };
await book.close();
console.log(JSON.stringify(memory));
