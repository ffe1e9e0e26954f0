#!/bin/sh
# A worker in a shell: it runs the jobs of one name with curl until there are none for a while, then leaves.
#
#   DAYBOOK_SERVER=http://127.0.0.1:8080 DAYBOOK_TOKEN=dbk_… sh worker.sh resize
set -eu
name=$1

# Says what the server answers; a refusal ends the script with its status.
say() {
  curl --silent --show-error --fail-with-body --max-time 60 \
    --header "Authorization: Bearer $DAYBOOK_TOKEN" --header "Content-Type: application/json" \
    --data "$2" "$DAYBOOK_SERVER/api/v1/workers/$1"
}

# The text of a field: enough for ids and leases, which have no quotes in them.
field() {
  sed -n "s/.*\"$1\":\"\([^\"]*\)\".*/\1/p"
}

session=$(say attach "{\"names\":[\"$name\"]}" | field session)
trap 'say leave "{\"session\":\"$session\"}" >/dev/null' EXIT

while :; do
  job=$(say claim "{\"session\":\"$session\",\"wait\":\"${DAYBOOK_WAIT:-5s}\",\"lease\":\"2m\"}")
  lease=$(printf %s "$job" | field lease)
  test -n "$lease" || break
  # The work: here it only says which job it was.
  id=$(printf %s "$job" | field id)
  say settle "{\"lease\":\"$lease\",\"result\":{\"by\":\"curl\",\"job\":\"$id\"}}" >/dev/null
done
