import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { testFolder } from "../support/open-test.ts";
import { projectWith, root, runPage, runProgram, snippetsOf } from "./snippet.ts";

test("the examples of docs/jobs.md run, and the README's job runs twice", async (t) => {
  const [, readme = ""] = snippetsOf(readFileSync(join(root, "README.md"), "utf8"));

  const printed = await runPage(t, "docs/jobs.md");
  const project = projectWith(t, { "readme.ts": readme });
  const first = await runProgram("readme.ts", project);
  const second = await runProgram("readme.ts", project);

  assert.match(printed, /^true false\nsuccess /);
  assert.match(printed, /time \[\s+'It waits until [^]*it was enqueued for then/);
  assert.match(printed, /status: 'cancelled' \}\ntrue manual\n/);
  assert.match(printed, /\ncompleted 3 3\napp-1\.4\.1\.zip 1\n$/);
  assert.deepEqual([first.code, first.stderr], [0, ""]);
  assert.deepEqual([first.stdout, second.stdout, second.stderr], ["paid\n", "paid\n", ""]);
});

test("the first job fails once, is finished once, and what is delayed says so", async (t) => {
  const { code, stdout, stderr } = await runProgram(join(root, "examples/first-job.ts"), testFolder(t));

  const [failed, , delayed, completed, , receipt] = stdout.split("\n");
  assert.deepEqual([code, stderr], [0, ""]);
  assert.match(failed ?? "", /^send-receipt, attempt 1: failed\. .* Error: the mail server did not answer\.$/);
  assert.match(delayed ?? "", /^ask-for-review, attempt 1: waiting\. It waits until .* it was enqueued for then\.$/);
  assert.match(completed ?? "", /^send-receipt, attempt 2: completed\. Its run ended as success/);
  assert.equal(receipt, "The receipt of o-17 was sent once.");
});

test("the pipeline waits for a retry, completes, and makes another job from a template", async (t) => {
  const { code, stdout, stderr } = await runProgram(join(root, "examples/pipeline.ts"), testFolder(t));

  assert.deepEqual([code, stderr], [0, ""]);
  assert.deepEqual(stdout.split("\n"), [
    ...["fetched the orders of May", "sent the report of May to ada", "completed: 2 of 2 jobs"],
    ...["sent the report of June to bob", "{ sentTo: 'bob' }", ""],
  ]);
});

test("the tour shows a job that is tried again and one that waits", async (t) => {
  const { stdout } = await runProgram(join(root, "examples/tour.ts"), testFolder(t));

  assert.match(stdout, /tried again when it fails: failed \(nobody was at home\), then completed/);
  assert.match(stdout, /A job that has not run says why\n +It waits until /);
});
