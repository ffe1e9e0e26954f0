// Opens the pairs' store at the moment it is told to, says so, and closes it again.
import { once } from "node:events";
import { openStore } from "../../src/storage/open-store.ts";
import { pairMigrations } from "../storage/pair.ts";

console.log("ready");
await once(process.stdin, "data");
const store = await openStore(process.argv[2] ?? "", pairMigrations);
console.log("open");
await store.close();
process.exit();
