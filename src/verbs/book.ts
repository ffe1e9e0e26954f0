// What is done with the book itself; these are called without a noun.
import { copy } from "./book/copy.ts";
import { keep } from "./book/keep.ts";
import { look } from "./book/look.ts";

export const book = { ...look, ...keep, ...copy };
