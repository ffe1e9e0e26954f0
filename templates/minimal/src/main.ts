// Opens the book, makes a job, and works until it is told to stop (Ctrl-C).
import { open } from "daybook";
import { everyMorning, greet } from "./jobs.ts";

await using book = await open(process.env["DAYBOOK_BOOK"] ?? "book.db", { use: [greet, everyMorning] });
const working = book.work();

const { id } = await book.jobs.enqueue(greet, { name: "Ada" });
console.log(await book.jobs.result(id));

await working;
