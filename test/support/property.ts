// fast-check with a seed that `npm test` keeps, so that what is green stays green. `npm run proof` draws a new one each
// time; a failure prints the seed, and DAYBOOK_TEST_SEED repeats it.
import fc from "fast-check";

const asked = process.env["DAYBOOK_TEST_SEED"] ?? "20260101";

/** `npm run proof` has the time for the long forms. */
export const isProof = asked === "random";

export const seed = isProof ? Math.floor(Math.random() * 2 ** 31) : Number(asked);

fc.configureGlobal({ seed });

export { fc };
