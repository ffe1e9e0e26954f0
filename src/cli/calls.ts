// daybook calls: HTTP requests that will be, or were, made.
import type { Command } from "commander";
import { curlCall } from "./calls/curl.ts";
import { listCalls } from "./calls/list.ts";
import { showCall } from "./calls/show.ts";
import { steerCalls } from "./calls/steer.ts";
import { submitCall } from "./calls/submit.ts";

const groupExample = `
Calls are sent while somebody works: a program that does, or daybook run (docs/calls.md). What is
secret in a request is sealed with the key in DAYBOOK_KEY, and is never shown.

Example:
  $ daybook calls submit --book shop.db https://stock.example/reserve --json-body '{"orderId":"o-17"}'
  $ daybook calls list --book shop.db --status failed`;

export function calls(program: Command): void {
  const group = program
    .command("calls")
    .description("submit, list, show, cancel and resend HTTP calls")
    .helpCommand(false)
    .addHelpText("after", groupExample);
  for (const add of [listCalls, showCall, submitCall, steerCalls, curlCall]) add(group);
}
