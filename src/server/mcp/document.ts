// The manual of the product as resources: an assistant that can read how things work asks better questions.
import { readdir, readFile } from "node:fs/promises";
import type { Resource } from "@modelcontextprotocol/sdk/types.js";

/** Beside the manifest of the package. */
const folder = new URL("docs/", new URL("../../../package.json", import.meta.url));
const prefix = "daybook://docs/";

/** The manual of the command line is about another way in. */
const leftOut: readonly string[] = ["cli.md"];

export async function listDocuments(): Promise<Resource[]> {
  const names = (await readdir(folder)).filter((name) => name.endsWith(".md") && !leftOut.includes(name)).toSorted();
  return Promise.all(
    names.map(async (name) => {
      const text = await readFile(new URL(name, folder), "utf8");
      const [, title = name] = /^# (.+)$/m.exec(text) ?? [];
      const size = Buffer.byteLength(text);
      return { uri: `${prefix}${name.slice(0, -".md".length)}`, name, title, mimeType: "text/markdown", size };
    }),
  );
}

/** Undefined when there is no such document. Only names from the list are opened. */
export async function readDocument(uri: string): Promise<string | undefined> {
  const known = (await listDocuments()).find((each) => each.uri === uri);
  return known === undefined ? undefined : readFile(new URL(known.name, folder), "utf8");
}
