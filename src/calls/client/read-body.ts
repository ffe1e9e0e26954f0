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

// By events: an iterator makes several promises for each chunk, which shows.
function readUpTo(stream: Readable, bytesMax: number): Promise<ReadBody> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let length = 0;
    let over = false;
    const done = (truncated: boolean): void => {
      over = true;
      resolve({ bytes: chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks), truncated });
    };
    stream.on("data", (chunk: Buffer) => {
      const room = bytesMax - length;
      length += chunk.length;
      if (room < 0) return;
      if (chunk.length <= room) return void chunks.push(chunk);
      if (room > 0) chunks.push(chunk.subarray(0, room));
      done(true);
      // And with it the connection; whatever it says of that is of no interest any more.
      stream.destroy();
    });
    stream.on("end", () => done(false));
    stream.on("error", reject);
    stream.on("close", () => {
      // Every answer closes in the end, and an error costs more than reading a short one.
      if (!over) reject(cutOff());
    });
  });
}

// It closed without an error and without an end.
function cutOff(): NodeJS.ErrnoException {
  return Object.assign(new Error("the answer was cut off"), { code: "ECONNRESET" });
}
