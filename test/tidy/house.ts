// npm run house: how the house is drawn, in numbers, to compare two trees. `-- --files` names the files that each way passes.
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { markFunctions, trailOf, type Trail } from "./count-hops.ts";
import { blankOut, importsOf } from "./scan.ts";

const root = resolve(import.meta.dirname, "../..");
const src = join(root, "src");

const files = readdirSync(src, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && entry.name.endsWith(".ts"))
  .map((entry) => join(entry.parentPath, entry.name))
  .map((path) => ({ path, text: readFileSync(path, "utf8") }));

printSizes();
printFolders();
printImporters();
await printTrails();

function printSizes(): void {
  const lines = files.map(({ path, text }) => ({ path, lines: text.split("\n").length - 1 }));
  lines.sort((a, b) => a.lines - b.lines);
  const biggest = lines.at(-1);
  say("files of src", files.length);
  say(
    "lines",
    lines.reduce((sum, each) => sum + each.lines, 0),
  );
  say("median file", `${lines[lines.length >> 1]?.lines} lines`);
  say("biggest file", `${biggest?.lines} lines, ${relative(src, biggest?.path ?? "")}`);
  say("files of at most 50 lines", lines.filter((each) => each.lines <= 50).length);
}

function printFolders(): void {
  const flat = Map.groupBy(files, ({ path }) => dirname(relative(src, path)));
  const crowded = [...flat].map(([folder, inside]) => ({ folder, count: inside.length }));
  crowded.sort((a, b) => b.count - a.count);
  const fullest = crowded.slice(0, 6).map(({ folder, count }) => `${folder === "." ? "src" : folder} ${count}`);
  say("fullest folders", fullest.join(", "));
}

function printImporters(): void {
  const importers = new Map(files.map(({ path }) => [path, 0]));
  for (const { path, text } of files) {
    const near = importsOf(text, blankOut(text)).filter(({ specifier }) => specifier.startsWith("."));
    for (const target of new Set(near.map(({ specifier }) => resolve(dirname(path), specifier)))) {
      const count = importers.get(target);
      if (count !== undefined) importers.set(target, count + 1);
    }
  }
  const counts = [...importers].sort((a, b) => b[1] - a[1]);
  say("files with one importer", counts.filter(([, count]) => count === 1).length);
  const top = counts.slice(0, 5).map(([path, count]) => `${relative(src, path)} ${count}`);
  say("most imported", top.join(", "));
}

async function printTrails(): Promise<void> {
  markFunctions(pathToFileURL(src).href);
  const { event, job, listener, open } = await import("../../src/index.ts");
  const folder = mkdtempSync(join(tmpdir(), "daybook-house-"));
  const path = join(folder, "house.db");
  const said = event("said");
  const quick = job("quick", { run: () => "done" });
  const failing = listener("failing", {
    on: said,
    attempts: 1,
    run() {
      throw new Error("on purpose");
    },
  });
  const book = await open(path, { use: [quick, said, failing] });
  const worker = await book.startWorker();
  // Once before it counts: what is done on first use is no part of the way.
  const runOne = async (): Promise<unknown> => (await book.jobs.enqueue(quick, {})).result();
  const loseOne = async (): Promise<void> => {
    await book.events.publish(said, {});
    await worker.idle();
  };
  await runOne();
  await loseOne();
  sayTrail("enqueue → settle", await trailOf(runOne));
  sayTrail("publish → dead letter", await trailOf(loseOne));
  await worker.stop();
  const waiting = await book.jobs.enqueue(quick, {});
  await book.close();
  const { argv } = process;
  process.argv = [process.execPath, "daybook", "jobs", "cancel", waiting.id, "--book", path, "--json"];
  const write = process.stdout.write;
  process.stdout.write = () => true;
  const trail = await trailOf(() => import("../../src/cli/main.ts"));
  process.stdout.write = write;
  process.argv = argv;
  sayTrail("daybook jobs cancel", trail);
  rmSync(folder, { recursive: true });
}

function sayTrail(what: string, { files: passed, hops }: Trail): void {
  say(what, `${passed.length} files, ${hops} hops`);
  if (process.argv.includes("--files")) for (const path of passed) console.log(`  ${relative(src, path)}`);
}

function say(what: string, value: string | number): void {
  console.log(`${what.padEnd(28)}${value}`);
}
