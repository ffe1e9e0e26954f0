import { fileOptions, type Place } from "./tree.ts";

/** The script that bash sources. It needs no package for completion: what it uses is part of bash since version 3. */
export function bashScript(places: readonly Place[]): string {
  return `# daybook completion bash: made from the commands of daybook, so make it anew after an update.
_daybook() {
  local cur=\${COMP_WORDS[COMP_CWORD]} prev='' at='' word words options valued i
  local IFS=$' \\t\\n'
  COMPREPLY=()
  _daybook_place ''
  for ((i = 1; i < COMP_CWORD; i++)); do
    word=\${COMP_WORDS[i]}
    prev=''
    if [[ $word == -* ]]; then
      # The value of an option is no command; "=" is a word of its own to bash.
      if [[ " $valued " == *" $word "* ]]; then
        prev=$word
        if [[ \${COMP_WORDS[i + 1]} == '=' && $((i + 1)) -le $COMP_CWORD ]]; then i=$((i + 1)); fi
        i=$((i + 1))
      fi
    elif _daybook_place "\${at:+$at }$word"; then
      at=\${at:+$at }$word
    fi
  done
  # The loop went past the word that is typed: it is the value of the option before.
  if [[ -n $prev && $i -gt $COMP_CWORD ]]; then
    [[ $cur == '=' ]] && cur=''
    _daybook_value "$at $prev"
  elif [[ $cur == -* ]]; then
    COMPREPLY=($(compgen -W "$options" -- "$cur"))
  else
    COMPREPLY=($(compgen -W "$words" -- "$cur"))
  fi
}

# Of a list ("several") many words may stand in one value, with commas between them.
_daybook_words() {
  local before=''
  [[ $2 == several && $cur == *,* ]] && before=\${cur%,*},
  COMPREPLY=($(compgen -P "$before" -W "$1" -- "\${cur#"$before"}"))
}

_daybook_value() {
  case $1 in
${valueCases(places)}
    # Files, which bash offers by itself.
    ${fileOptions(places)
      .map((name) => `*' ${name}'`)
      .join(" | ")}) ;;
    *) compopt +o default 2> /dev/null ;;
  esac
}

# What may be typed at a place; false when there is no such place, and then nothing changes.
_daybook_place() {
  case $1 in
${places.map(placeCase).join("\n")}
    *) return 1 ;;
  esac
}

complete -o default -F _daybook daybook
`;
}

function placeCase({ path, words, options }: Place): string {
  const valued = options.filter(({ value }) => value !== null);
  return `    '${path}')
      words='${namesOf(words)}'
      options='${namesOf(options)}'
      valued='${namesOf(valued)}' ;;`;
}

function namesOf(each: readonly { readonly name: string }[]): string {
  return [...new Set(each.map(({ name }) => name))].join(" ");
}

function valueCases(places: readonly Place[]): string {
  const cases = new Map<string, string[]>();
  for (const { path, options } of places) {
    for (const { name, value, several } of options) {
      if (value === null || typeof value === "string") continue;
      const words = `'${value.join(" ")}'${several ? " several" : ""}`;
      cases.set(words, [...(cases.get(words) ?? []), `'${path} ${name}'`]);
    }
  }
  return [...cases].map(([words, where]) => `    ${where.join(" | ")}) _daybook_words ${words} ;;`).join("\n");
}
