// Reads an answer up to a limit and no further: what comes after it is not waited for, unpacked or kept.
import type { Readable } from "node:stream";
import { createBrotliDecompress, createGunzip, createInflate } from "node:zlib";

export type ReadBody = { readonly bytes: Buffer; readonly truncated: boolean };

export async function readBody(body: Readable, encoding: string, bytesMax: number): Promise<ReadBody> {
  const unpack = unpackers.get(encoding.trim().toLowerCase());
  if (unpack === undefined) return readUpTo(body, bytesMax);
  const unpacked = unpack();
  body.on("error", (error) => unpacked.destroy(error));
  try {
    return await readUpTo(body.pipe(unpacked), bytesMax);
  } finally {
    body.destroy();
  }
}

const unpackers: ReadonlyMap<string, () => ReturnType<typeof createGunzip>> = new Map([
  ["gzip", createGunzip],
  ["x-gzip", createGunzip],
  ["deflate", createInflate],
  ["br", createBrotliDecompress],
]);

async function readUpTo(stream: Readable, bytesMax: number): Promise<ReadBody> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const room = bytesMax - length;
    if (chunk.length > room) {
      if (room > 0) chunks.push(chunk.subarray(0, room));
      // Leaving the loop destroys the stream, and with it the connection.
      return { bytes: Buffer.concat(chunks), truncated: true };
    }
    chunks.push(chunk);
    length += chunk.length;
  }
  return { bytes: Buffer.concat(chunks), truncated: false };
}
