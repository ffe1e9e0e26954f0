// Where files are kept that belong to the book and are too big for it.
import { resolve } from "node:path";
import { invalid } from "../core/error.ts";
import { quote } from "../core/quote.ts";
import { parseLocation } from "./open-store.ts";

/** Beside a file book; else in the folder in which the program works. It is made when the first file is. */
export function filesFolder(url: string, given: string | undefined): string {
  if (given !== undefined) {
    if (typeof given === "string" && given !== "" && !given.includes("\0")) return resolve(given);
    throw invalid(`files is ${quote(given)}: give the path of a folder`);
  }
  const where = parseLocation(url);
  return resolve(where.dialect === "sqlite" && where.path !== ":memory:" ? `${where.path}-files` : ".daybook/files");
}
