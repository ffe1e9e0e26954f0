import { readFileSync } from "node:fs";
import { remember } from "./remember.ts";

/** The version of this package. */
export function packageVersion(): string {
  return versionIn("../../package.json");
}

const versionIn = remember((path: string) => {
  const manifest = JSON.parse(readFileSync(new URL(path, import.meta.url), "utf8")) as { version: string };
  return manifest.version;
});
