import type { Place, Typed } from "./tree.ts";

/** The commands that fish reads from its folder of completions. */
export function fishScript(places: readonly Place[]): string {
  const known = places.filter(({ path }) => path !== "").map(({ path }) => quoted(path));
  const valued = new Set(
    places.flatMap(({ options }) => options.flatMap(({ name, value }) => (value === null ? [] : name))),
  );
  return `# daybook completion fish: made from the commands of daybook, so make it anew after an update.
set -g __daybook_places ${known.join(" ")}
set -g __daybook_valued ${[...valued].join(" ")}

# Where the words that stand there lead to: "", "jobs" or "jobs list".
function __daybook_at
    set -l at ''
    set -l skip no
    for word in (commandline -opc)[2..-1]
        if test $skip = yes
            set skip no
        else if contains -- $word $__daybook_valued
            set skip yes
        else if not string match -q -- '-*' $word
            set -l deeper (string trim -- "$at $word")
            contains -- $deeper $__daybook_places; and set at $deeper
        end
    end
    test "$at" = "$argv[1]"
end

complete -c daybook -f
complete -c daybook -n "__daybook_at run" -F
${places.flatMap(linesOf).join("\n")}
`;
}

function linesOf({ path, words, options }: Place): string[] {
  const here = `complete -c daybook -n '__daybook_at ${path === "" ? String.raw`\'\'` : String.raw`\'${path}\'`}'`;
  return [
    ...words.map(({ name, about }) => `${here} -a ${name}${said(about)}`),
    ...options.map((option) => `${here} -l ${option.name.slice(2)}${valueOf(option)}${said(option.about)}`),
  ];
}

function said(about: string): string {
  return about === "" ? "" : ` -d ${quoted(about)}`;
}

function valueOf({ value }: Typed): string {
  if (value === null) return "";
  if (value === "files") return " -r -F";
  return value === "anything" ? " -x" : ` -x -a ${quoted(value.join(" "))}`;
}

/** In single quotes only a backslash and the quote itself mean something to fish. */
function quoted(text: string): string {
  return `'${text.replaceAll("\\", "\\\\").replaceAll("'", String.raw`\'`)}'`;
}
