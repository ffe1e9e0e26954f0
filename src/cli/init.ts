// daybook init: makes a project that works, from one of the templates.
import { Option, type Command } from "commander";

const templates = ["minimal", "server", "automations"] as const;
type Template = (typeof templates)[number];

const example = `
minimal is a program with a job and a schedule; server is a service with events, jobs and an HTTP API; automations
is a folder of apps for a home. Files that are there already are never changed: if one of the project's is, nothing is written.

Examples:
  $ daybook init shop
  $ daybook init --template server`;

export function init(program: Command): void {
  program
    .command("init")
    .description("make a project that works: package.json, tsconfig, source, README")
    .argument("[folder]", "the folder of the project; it is made if it is not there (default: this one)")
    .addOption(new Option("--template <name>", "what kind of project").choices(templates).default("minimal"))
    .addHelpText("after", example)
    .action(async (folder: string | undefined, { template }: { template: Template }, command: Command) => {
      // Imported when it runs: help needs none of it.
      const { makeProject } = await import("./make-project.ts");
      const { printAnswer } = await import("./with-book.ts");
      await printAnswer(command, await makeProject(folder ?? ".", template));
    });
}
