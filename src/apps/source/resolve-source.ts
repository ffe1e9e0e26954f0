// What is kept of where a registration was made: its place, always, and the text of its call, as well as it can be had. It
// is read once per file and setup, after the setup, and never while something runs.
import { stat } from "node:fs/promises";
import { limits } from "../../core/limits.ts";
import { locationOf, type CallSite } from "./call-site.ts";
import { findCall, parseCalls, type Calls } from "./find-call.ts";
import { originOf, readSource, type ReadSource } from "./origin.ts";

export type Source = { readonly location: string; readonly text: string | null };

type KnownFile = {
  readonly stamp: string;
  readonly read: Promise<ReadSource>;
  readonly calls: Map<string, Promise<Calls>>;
};

const filesMax = 200;
const known = new Map<string, KnownFile>();

export async function resolveSource(site: CallSite): Promise<Source> {
  const plain = { location: locationOf(site), text: null };
  if (site.file === null) return plain;
  try {
    const { read, calls } = await knownFile(site.file);
    const origin = await originOf(await read, site);
    const location = locationOf(origin);
    if (site.made) return { location, text: null };
    return { location, text: await textOf(origin, calls).catch(() => null) };
  } catch {
    return plain;
  }
}

async function textOf(
  { file, text, line, column }: Awaited<ReturnType<typeof originOf>>,
  calls: Map<string, Promise<Calls>>,
): Promise<string | null> {
  let parsed = calls.get(file);
  if (parsed === undefined) calls.set(file, (parsed = parseCalls(file, text)));
  const found = findCall(text, await parsed, line, column);
  return found !== null && Buffer.byteLength(found) <= limits.registrationSourceBytesMax ? found : null;
}

// A file that was edited is read again.
async function knownFile(file: string): Promise<KnownFile> {
  const { mtimeMs, size } = await stat(file);
  const stamp = `${mtimeMs} ${size}`;
  const found = known.get(file);
  if (found?.stamp === stamp) return found;
  if (known.size >= filesMax) known.clear();
  const fresh = { stamp, read: readSource(file), calls: new Map<string, Promise<Calls>>() };
  known.set(file, fresh);
  return fresh;
}
