// A program that makes a book, writes to it again and again, and says on standard output when each write is acknowledged.
import { writeSync } from "node:fs";
import { open } from "../../src/index.ts";

const [path = "", count = "0"] = process.argv.slice(2);
const book = await open(path, { attach: false });
await book.write((tx) => tx.sql`create table note (n integer)`);
writeSync(1, "acknowledged\n");
for (let n = 1; n < Number(count); n++) {
  await book.write((tx) => tx.sql`insert into note values (${n})`);
  writeSync(1, "acknowledged\n");
}
await book.close();
