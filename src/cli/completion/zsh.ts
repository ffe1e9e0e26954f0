import { fileOptions, type Place } from "./tree.ts";

/** The function that zsh loads from a folder of its fpath. */
export function zshScript(places: readonly Place[]): string {
  return `#compdef daybook
# daybook completion zsh: made from the commands of daybook, so make it anew after an update.
_daybook() {
  local at='' word option='' i
  local -a next flags valued
  _daybook_place ''
  for ((i = 2; i < CURRENT; i++)); do
    word=\${words[i]}
    option=''
    if [[ $word == -* ]]; then
      if (( \${valued[(Ie)$word]} )); then
        option=$word
        (( i++ ))
      fi
    elif _daybook_place "\${at:+$at }$word"; then
      at=\${at:+$at }$word
    fi
  done
  if [[ -n $option && $i -gt $CURRENT ]]; then
    _daybook_value "$at $option"
  elif [[ \${words[CURRENT]} == -* ]]; then
    _describe -o option flags
  elif (( $#next )); then
    _describe command next
  else
    _files
  fi
}

_daybook_value() {
  case $1 in
${valueCases(places)}
    (*) return 1 ;;
  esac
}

_daybook_place() {
  case $1 in
${places.map(placeCase).join("\n")}
    (*) return 1 ;;
  esac
}

# Loaded by its name it is called at once; sourced it makes itself known.
if [[ $funcstack[1] == _daybook ]]; then _daybook "$@"; else compdef _daybook daybook; fi
`;
}

function placeCase({ path, words, options }: Place): string {
  const valued = options.filter(({ value }) => value !== null).map(({ name }) => name);
  return `    ('${path}')
      next=(${words.map(described).join(" ")})
      flags=(${options.map(described).join(" ")})
      valued=(${[...new Set(valued)].join(" ")}) ;;`;
}

/** The name ends at the first colon, so what follows may have more. */
function described({ name, about }: { readonly name: string; readonly about: string }): string {
  return about === "" ? `'${name}'` : `'${name}:${quoted(about)}'`;
}

function quoted(text: string): string {
  return text.replaceAll("'", String.raw`'\''`);
}

function valueCases(places: readonly Place[]): string {
  const lines = places.flatMap(({ path, options }) =>
    options.flatMap(({ name, value, several }) => {
      if (value === null || typeof value === "string") return [];
      return [
        `    ('${path} ${name}') _values ${several ? "-s , " : ""}word ${value.map((each) => `'${each}'`).join(" ")} ;;`,
      ];
    }),
  );
  return [...lines, ...fileOptions(places).map((name) => `    (*' ${name}') _files ;;`)].join("\n");
}
