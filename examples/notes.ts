// The smallest useful program: a table of its own in a book, written and read.
//
//   node notes.ts "buy milk"                                            in your project
//   npx node --conditions=@daybook/source examples/notes.ts "buy milk"   in this repo, on its sources
import { open } from "daybook";

await using book = await open("notes.db");

const body = process.argv[2] ?? "hello";
await book.write(async (tx) => {
  await tx.sql`create table if not exists note (id integer primary key, body text not null, written_at integer not null)`;
  await tx.sql`insert into note (body, written_at) values (${body}, ${tx.now})`;
});

type Note = { id: number; body: string; written_at: number };
const notes = await book.read((tx) => tx.sql<Note>`select id, body, written_at from note order by id`);
for (const note of notes) console.log(`${note.id}  ${new Date(note.written_at).toISOString()}  ${note.body}`);
