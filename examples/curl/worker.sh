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

# The text of a field of the answer, the first or the last of its name: enough for ids and leases, which have no quotes in them. The
# params of a job stand between its id and its lease, and may have fields of the same names.
first() {
  grep -o "\"$1\":\"[^\"]*\"" | head -n 1 | cut -d '"' -f 4
}
last() {
  grep -o "\"$1\":\"[^\"]*\"" | tail -n 1 | cut -d '"' -f 4
}

session=$(say attach "{\"names\":[\"$name\"]}" | first session)
trap 'say leave "{\"session\":\"$session\"}" >/dev/null' EXIT

while :; do
  job=$(say claim "{\"session\":\"$session\",\"wait\":\"${DAYBOOK_WAIT:-5s}\",\"lease\":\"2m\"}")
  lease=$(printf %s "$job" | last lease)
  test -n "$lease" || break
  # The work: here it only says which job it was.
  id=$(printf %s "$job" | first id)
  say settle "{\"lease\":\"$lease\",\"result\":{\"by\":\"curl\",\"job\":\"$id\"}}" >/dev/null
done
