// daybook completion: prints what makes a shell complete the commands, made from the program and the table of verbs.
import { Argument, type Command } from "commander";
import { bashScript } from "./completion/bash.ts";
import { fishScript } from "./completion/fish.ts";
import { placesOfProgram } from "./completion/tree.ts";
import { zshScript } from "./completion/zsh.ts";

const scripts = { bash: bashScript, zsh: zshScript, fish: fishScript };

const example = `
Commands, options and the words that a value may be are completed without starting daybook, so make
the script anew after an update.

Examples:
  $ eval "$(daybook completion bash)"
  $ daybook completion zsh > "\${fpath[1]}/_daybook"
  $ daybook completion fish > ~/.config/fish/completions/daybook.fish`;

export function completion(program: Command): void {
  program
    .command("completion")
    .description("print a script that makes a shell complete commands, options and values")
    .addArgument(new Argument("<shell>", "the shell").choices(Object.keys(scripts)))
    .addHelpText("after", example)
    .action(async (shell: keyof typeof scripts) => {
      const { createProgram } = await import("./program.ts");
      const whole = await createProgram({ json: false, isNamed: () => true });
      process.stdout.write(scripts[shell](await placesOfProgram(whole)));
    });
}
