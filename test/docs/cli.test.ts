import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Command } from "commander";
import { createProgram } from "../../src/cli/program.ts";
import { assertGenerated } from "./generated.ts";
import { root } from "./snippet.ts";

const program = await createProgram({ json: false, isNamed: () => true });
const all = withSubcommands(program);

for (const command of all) {
  const name = nameOf(command);

  test(`docs/cli.md shows the help of ${name} as it is`, () => {
    assertGenerated("docs/cli.md", name, `\`\`\`text\n${helpOf(command)}\`\`\`\n`);
  });
}

test("docs/cli.md names every command, and no option is left without a word", () => {
  const manual = readFileSync(join(root, "docs/cli.md"), "utf8");

  for (const command of commandsOf(program)) {
    assert.ok(manual.includes(`## ${command.name()}\n`), `docs/cli.md has no section "${command.name()}"`);
  }
  for (const command of all) {
    assert.notEqual(command.description(), "", nameOf(command));
    for (const option of command.options) {
      assert.ok(manual.includes(option.long ?? option.flags), `docs/cli.md does not name ${option.flags}`);
      assert.notEqual(option.description, "", option.flags);
    }
  }
});

function withSubcommands(command: Command): Command[] {
  return [command, ...commandsOf(command).flatMap(withSubcommands)];
}

/** What "help" does needs no section of its own. */
function commandsOf({ commands }: Command): Command[] {
  return commands.filter((each) => each.name() !== "help");
}

function nameOf(command: Command): string {
  return command.parent === null ? "daybook" : `${nameOf(command.parent)} ${command.name()}`;
}

function helpOf(command: Command): string {
  let text = "";
  // The global options are the same everywhere; the commands of a group leave them out here.
  if (command.parent?.parent != null) command.configureHelp({ showGlobalOptions: false });
  // As wide as a terminal is at least, whatever the width of the one that runs the test.
  command.configureOutput({ writeOut: (part) => void (text += part), getOutHelpWidth: () => 80 }).outputHelp();
  return text;
}
