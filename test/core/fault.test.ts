import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";

const fault = new URL("../../src/core/fact.ts", import.meta.url).href;

function runPasses(crashAt: string | undefined): {
  signal: string | null;
  status: number | null;
  out: string;
  err: string;
} {
  const code = `
    import { writeSync } from "node:fs";
    import { killPoint } from ${JSON.stringify(fault)};
    for (let pass = 1; pass <= 3; pass++) {
      killPoint("other");
      killPoint("commit:before");
      writeSync(1, String(pass));
    }`;
  const { DAYBOOK_CRASH_AT: _unset, ...env } = process.env;
  const child = spawnSync(process.execPath, ["--input-type=module", "--eval", code], {
    env: crashAt === undefined ? env : { ...env, DAYBOOK_CRASH_AT: crashAt },
    encoding: "utf8",
  });
  return { signal: child.signal, status: child.status, out: child.stdout, err: child.stderr };
}

test("a kill point does nothing unless it was asked for", () => {
  assert.deepEqual(runPasses(undefined), { signal: null, status: 0, out: "123", err: "" });
  assert.deepEqual(runPasses("unheard-of:1"), { signal: null, status: 0, out: "123", err: "" });
});

test("the process is killed on the n-th pass and nothing after it runs", () => {
  assert.deepEqual(runPasses("commit:before:3"), { signal: "SIGKILL", status: null, out: "12", err: "" });
});

test("a crash request that cannot be understood is refused at the start", () => {
  for (const text of ["commit", "commit:0", "commit:x", ":1"]) {
    const { status, err, out } = runPasses(text);
    assert.equal(status, 1);
    assert.equal(out, "");
    assert.match(err, /write it as name:n, n from 1/);
  }
});
