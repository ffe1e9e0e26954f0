// Where a value in argv would become code: shells and remote shells put their arguments together and read them as a script, and
// interpreters run a text that they are given. The lists cannot be complete: whoever writes argv answers for what its program makes of it.
import { invalid } from "../../core/error.ts";
import {
  findProgram,
  inAFile,
  isOfSystem,
  nameAt,
  ofName,
  readOption,
  type Argument,
  type Options,
} from "./started-program.ts";

const shells =
  /^(?:(?:ba|da|z|k|mk|a|fi|tc|c|pw|r|s|nu|x?on|rba|elvi)?sh|powershell|cmd|mosh|autossh|rexec|su|runuser|script|parallel|watch|tmux|screen)$/;
/** Also names that people give to programs of their own. */
const oftenOwn = /^(?:script|parallel|watch|tmux|screen)$/;

type Interpreter = Options & {
  /** Options whose value is a script, as letters and as names. */
  readonly code?: RegExp;
  /** Words that stand before a script. */
  readonly words?: RegExp;
  /** Letters behind whose value no options of its own follow. */
  readonly last?: RegExp;
};

const interpreters: Readonly<Record<string, Interpreter>> = {
  bun: {
    short: "bhie:r:c:",
    long: "eval= print= preload= cwd= config= env-file=",
    code: /^(?:[ep]|eval|print)$/,
    words: /^(?:run|exec|x)$/,
  },
  deno: { short: "c:L:", long: "config= import-map= lock=", words: /^(?:run|eval|test|serve)$/ },
  elixir: { short: "e:r:", long: "eval= rpc-eval=", code: /^(?:e|eval|rpc-eval)$/ },
  groovy: { short: "e:", code: /^e$/ },
  julia: { short: "qie:E:p:t:L:J:", long: "eval= print= load=", code: /^(?:[eE]|eval|print)$/ },
  lua: { short: "iEvWe:l:", code: /^e$/ },
  luajit: { short: "e:l:j?", code: /^e$/ },
  node: {
    short: "chive:r:C:",
    long: `eval= print= require= import= loader= experimental-loader= conditions= env-file= env-file-if-exists= input-type= title= no-warnings
      enable-source-maps experimental-strip-types test watch inspect inspect-brk trace-warnings use-strict permission expose-gc`,
    code: /^(?:[ep]|eval|print)$/,
  },
  osascript: { short: "e:l:s:i", code: /^e$/ },
  perl: { short: "01234567acflnpsStTuUvwWXe:E:I:C?D?F?i?M?m?x?V?", code: /^[eE]$/ },
  php: {
    short: "aehHilmnqsvwr:B:R:E:F:f:d:c:z:S:t:",
    long: "run= process-begin= process-code= process-end= define= php-ini= file=",
    code: /^(?:[rBRE]|run|process-.*)$/,
  },
  python: { short: "bBdEhiIOPqRsSuvVxc:m:W:X:Q:", long: "check-hash-based-pycs=", code: /^c$/, last: /^[cm]$/ },
  rscript: { short: "e:", long: "vanilla verbose", code: /^e$/ },
  ruby: {
    short: "01234567acdhlnpsSTUvwWye:I:r:C:E:F?i?K?x?",
    long: "encoding= external-encoding= internal-encoding=",
    code: /^e$/,
  },
  tclsh: { long: "encoding=" },
};
const alike: Readonly<Record<string, string>> = {
  nodejs: "node",
  tsx: "node",
  "ts-node": "node",
  pypy: "python",
  ipython: "python",
  jruby: "ruby",
};

const editors = /^(?:[gmn]?awk|g?sed|jq)$/;
/** Options of editors whose value is the next argument; that of these is a script. */
const editorTakes = /^(?:-[FvlsLI]|--(?:field-separator|assign|line-length|indent))$/;
const editorTakesTwo = /^--(?:arg|argjson|slurpfile|rawfile)$/;
const editorScript = /^(?:-[a-z]*[ef]|--(?:expression|file|source|from-file))$/;
// To these `--` ends nothing.
const withoutEnd = /^(?:find|convert|magick|mogrify|ffmpeg|java|dd|test|expr)$/;

/** Refuses what would let a param be a program or a script, and returns from where on arguments cannot be options: behind a
 *  `--` of the program itself that stands just before the first of them that begins with a param. */
export function operandsFrom(job: string, argv: readonly Argument[], beginsWithParam: (at: number) => boolean): number {
  if (!argv.some(({ values }) => values)) return Number.POSITIVE_INFINITY;
  const program = findProgram(job, argv);
  refuseCode(job, argv, program);
  const end = argv.findIndex(({ text }, at) => at > program && text === "--" && beginsWithParam(at + 1));
  return end === -1 || withoutEnd.test(nameAt(argv, program)) ? Number.POSITIVE_INFINITY : end;
}

// A value inside a script is code, whatever is done about its quotes.
function refuseCode(job: string, argv: readonly Argument[], program: number): void {
  const { text = "" } = argv[program] ?? {};
  const name = nameAt(argv, program);
  if (shells.test(name) && (!oftenOwn.test(name) || isOfSystem(text))) throw isShell(job, name);
  const interpreter = interpreterAt(argv, program);
  const scripts =
    interpreter !== undefined
      ? optionsOf(argv, program, interpreter)
      : editors.test(name)
        ? editorScripts(argv, program)
        : behindUnknown(argv, program);
  const script = scripts.find((at) => argv[at]?.values === true);
  if (script === undefined) return;
  throw invalid(
    `command "${job}" puts a param into a script (argument ${script}), where it would be run as code: ` +
      'give it as an argument of the script: ["node", "-e", "console.log(process.argv[1])", "--", "{name}"]',
  );
}

/** The options of an interpreter, with their values, up to its script: some of them are code, or choose some. What follows an option
 *  that is not known may be its value, and so be followed by others. */
function optionsOf(argv: readonly Argument[], program: number, interpreter: Interpreter): number[] {
  const found: number[] = [];
  let maybeValue = false;
  for (let at = program + 1; at < argv.length; at++) {
    const { text = "" } = argv[at] ?? {};
    if (text === "--") return maybeValue ? [...found, at + 1] : found;
    if (text.startsWith("-") && text !== "-") {
      // Glued to a value, an option ends where the value begins.
      const option = readOption(interpreter, text.replace(/\{.*/s, ""));
      found.push(at);
      maybeValue = option === undefined;
      if (option?.takesNext === true && !text.includes("{")) found.push(++at);
      if (argv[at]?.text === "--") found.push(at + 1);
      if (interpreter.last?.test(option?.name ?? "") === true) return found;
    } else if (maybeValue || interpreter.words?.test(text) === true) {
      found.push(at);
      maybeValue = interpreter.words?.test(text) === true && /^e(?:val|xec)$/.test(text);
    } else return found;
  }
  return found;
}

/** A program that is not known may start a shell or an interpreter, too: it counts where its script follows at once. */
function behindUnknown(argv: readonly Argument[], program: number): number[] {
  return argv.flatMap((_, at) => {
    const { text = "" } = argv[at + 1] ?? {};
    if (at <= program) return [];
    if (shells.test(nameAt(argv, at)) && /^-[a-z]*c$/.test(text)) return [at + 2];
    const interpreter = interpreterAt(argv, at);
    const option = interpreter === undefined || !text.startsWith("-") ? undefined : readOption(interpreter, text);
    return option !== undefined && interpreter?.code?.test(option.name) === true ? [at + 1, at + 2] : [];
  });
}

/** Where the scripts of sed, awk and their like stand: behind an option, or else first. */
function editorScripts(argv: readonly Argument[], program: number): number[] {
  const found: number[] = [];
  for (let at = program + 1; at < argv.length; at++) {
    const { text = "" } = argv[at] ?? {};
    if (editorScript.test(text)) found.push(++at);
    else if (editorTakes.test(text)) at++;
    else if (editorTakesTwo.test(text)) at += 2;
    else if (text.startsWith("-")) found.push(at);
    else return found.some((place) => !argv[place]?.text.startsWith("-")) ? found : [...found, at];
  }
  return found;
}

function isShell(job: string, name: string): Error {
  return invalid(
    `command "${job}" gives params to "${name}", which makes a script of what it is given: write the script ${inAFile}`,
  );
}

function interpreterAt(argv: readonly Argument[], at: number): Interpreter | undefined {
  const name = nameAt(argv, at);
  return ofName(interpreters, alike[name] ?? name);
}
