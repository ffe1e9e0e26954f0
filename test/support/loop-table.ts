// Runs the verbs of the table at their worst inputs and says which of them hold the loop.
import type { TestContext } from "node:test";
import { everyVerb } from "../../src/verbs/table.ts";
import { checkInput, type Verb } from "../../src/verbs/verb.ts";
import { systemClock } from "../../src/core/clock.ts";
import { isDaybookError, type Book } from "../../src/index.ts";
import { longestPieceMs, pieceMsMax } from "./loop-work.ts";
import type { Backend } from "./open-test.ts";
import { openWorst, worstJson, type World } from "./worst-book.ts";
import { worst, type Asked, type Make } from "./worst-inputs.ts";

export const verbs = new Map<string, Verb>(await everyVerb());

/** Of the worst documents. */
const slightest = "one long text";

export type Held = { readonly what: string; readonly ms: number; readonly refused?: string };

/** Every verb at its worst inputs over a book of so many rows: for how long it held the loop, or why it was refused. A slice has one
 *  large document only, and leaves out what takes long to make. */
export async function holdsOf(
  t: TestContext,
  backend: Backend,
  many: number,
  { isSlice = false } = {},
): Promise<Held[]> {
  const world = await openWorst(t, backend, many, isSlice ? [slightest] : undefined);
  const held: Held[] = [];
  for (const [key, row] of Object.entries(worst)) {
    const verb = verbs.get(key);
    // A book on PostgreSQL is backed up by its own programs.
    if (verb === undefined || (backend === "postgres" && copies.has(key))) continue;
    for (const [how, make] of Object.entries(row)) {
      const what = `${backend}: ${key}, ${how}`;
      if (isSlice && takesLong.test(how)) continue;
      held.push({ what, ...(await holdOf(world, verb, make)) });
    }
  }
  return held;
}

const copies = new Set(["book.backup", "backups.create"]);

const takesLong = new RegExp(
  Object.keys(worstJson)
    .filter((name) => name !== slightest)
    .join("|") + "|large|many words",
);

export function heldTooLong(held: readonly Held[]): Held[] {
  return held.filter(({ ms, refused }) => refused !== undefined || ms >= pieceMsMax);
}

// What holds the loop does so every time; what is compiled or collected just then, does not.
async function holdOf(world: World, verb: Verb, make: Make): Promise<Omit<Held, "what">> {
  let ms = Infinity;
  for (let attempt = 0; attempt < 3 && ms >= pieceMsMax; attempt++) {
    const made = await make(world);
    const asked: Asked = "input" in made ? (made as Asked) : { input: made };
    try {
      ms = Math.min(ms, await longestPieceMs(() => answer(asked.on ?? world.book, verb, asked)));
    } catch (error) {
      return { ms, refused: String(error).slice(0, 300) };
    }
  }
  return { ms };
}

/** As a way in does: the input is checked, and what comes bit by bit is taken to its end. A read may end by its deadline. */
async function answer(book: Book, verb: Verb, { input, meanwhile }: Asked): Promise<void> {
  const call = { signal: new AbortController().signal, tenant: null };
  const run = async (): Promise<void> => {
    const given = await verb.run(book, checkInput(verb, input), call);
    if (verb.stream === true || verb.lines === true) for await (const _ of given as AsyncIterable<unknown>) continue;
  };
  let going = true;
  const answered = run()
    .catch((error: unknown) => {
      if (!isDaybookError(error) || error.code !== "timeout") throw error;
    })
    .finally(() => (going = false));
  while (going && meanwhile !== undefined) {
    await meanwhile();
    await systemClock.sleep(100);
  }
  await answered;
}
