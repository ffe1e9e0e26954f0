// Holds the write lock of a SQLite file until it is told to let go.
import { once } from "node:events";
import { DatabaseSync } from "node:sqlite";

const db = new DatabaseSync(process.argv[2] ?? "", { timeout: 5000 });
db.exec("begin immediate");
console.log("held");

await once(process.stdin, "data");
db.exec("rollback");
db.close();
process.exit();
