/** One file as the rules see it: a path from the root of the repo with forward slashes, and its text. */
export interface SourceFile {
  readonly path: string;
  readonly text: string;
}

export interface Import {
  readonly specifier: string;
  readonly line: number;
}

const comment = /\/\/[^\n]*|\/\*[^]*?(?:\*\/|$)/y;
const quoted = /"(?:\\[^]|[^"\\\n])*"?|'(?:\\[^]|[^'\\\n])*'?/y;
const templatePart = /(?:\\[^]|\$(?!\{)|[^`\\$])*(?:`|\$\{|$)/y;
const regularExpression = /\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n[])+\/[a-z]*/y;

/**
 * The text with the insides of comments, strings, templates and regular expressions turned into spaces. Quotes, line
 * breaks and offsets stay, so a match in the result can be looked up in the text. It is a scanner and not a parser:
 * the one thing it has to guess is whether a slash divides or opens a regular expression.
 */
export function blankOut(text: string): string {
  let code = "";
  const braces: ("block" | "template")[] = [];

  const take = (pattern: RegExp): string => {
    pattern.lastIndex = code.length;
    return pattern.exec(text)?.[0] ?? "";
  };
  const blank = (part: string): string => part.replace(/[^\n]/g, " ");
  const template = (): void => {
    const part = take(templatePart);
    const end = part.endsWith("${") ? "${" : part.endsWith("`") ? "`" : "";
    if (end === "${") braces.push("template");
    code += blank(part.slice(0, part.length - end.length)) + end;
  };

  if (text.startsWith("#!")) code = blank(text.slice(0, (text + "\n").indexOf("\n")));
  while (code.length < text.length) {
    const char = text.charAt(code.length);
    if (char === '"' || char === "'") {
      const part = take(quoted);
      const closed = part.length > 1 && part.endsWith(char);
      code += char + blank(part.slice(1, closed ? -1 : undefined)) + (closed ? char : "");
    } else if (char === "`") {
      code += char;
      template();
    } else if (char === "/") {
      const part = take(comment) || (opensRegularExpression(code) ? take(regularExpression) : "");
      code += part === "" ? char : blank(part);
    } else {
      code += char;
      if (char === "{") braces.push("block");
      if (char === "}" && braces.pop() === "template") template();
    }
  }
  return code;
}

function opensRegularExpression(codeBefore: string): boolean {
  const before = codeBefore.trimEnd();
  return (
    before === "" ||
    /[(,=:[!&|?{};+\-*%~^<>]$|\b(?:return|typeof|case|in|of|do|else|throw|await|yield|void)$/.test(before)
  );
}

/** Every module a file names: imports of all forms, also of types, and files named by `new URL` for a thread. */
export function importsOf(text: string, code: string): Import[] {
  const named =
    /(?:\bfrom|\bimport|\b(?:import|require|getBuiltinModule|import\.meta\.resolve|new\s+URL)\s*\()\s*(["'`])/g;
  return [...code.matchAll(named)].map((match) => {
    const start = match.index + match[0].length;
    const end = code.indexOf(match[1] ?? '"', start);
    return { specifier: text.slice(start, end), line: lineAt(text, match.index) };
  });
}

export function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length;
}
