// records: what is known, how it came to be, and what it is connected with.
import { look } from "./records/look.ts";
import { past } from "./records/past.ts";
import { write } from "./records/write.ts";

export const records = { ...look, ...past, ...write };
