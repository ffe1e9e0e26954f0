import { readFileSync } from "node:fs";

let known: string | undefined;

/** The version of this package. */
export function packageVersion(): string {
  return (known ??= readManifest().version);
}

function readManifest(): { readonly version: string } {
  return JSON.parse(readFileSync(new URL("../../package.json", import.meta.url), "utf8")) as { version: string };
}
