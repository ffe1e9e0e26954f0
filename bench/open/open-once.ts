// Started by bench/open.ts: a program that has just begun, imports the library and opens a book that exists.
import { pathToFileURL } from "node:url";
import type * as daybook from "../../src/index.ts";

export type OpenTimes = { readonly importMs: number; readonly openMs: number };

const [, , path = "", index = ""] = process.argv;
const begun = performance.now();
const { open } = (await import(pathToFileURL(index).href)) as typeof daybook;
const imported = performance.now();
const book = await open(path);
const opened = performance.now();
await book.close();
const times: OpenTimes = { importMs: imported - begun, openMs: opened - imported };
console.log(JSON.stringify(times));
