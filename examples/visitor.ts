// A second process that has the tour's book open. It says which session it is and stays until its input ends.
import { open } from "daybook";

await using book = await open(process.argv[2] ?? ":memory:", { metadata: { role: "visitor" } });
console.log(book.sessionId);

process.stdin.resume();
await new Promise((resolve) => process.stdin.once("end", resolve));
