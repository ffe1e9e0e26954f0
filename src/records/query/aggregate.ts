// Numbers about many records. Without records, a count is 0 and everything else is null.
import { joinSql, rawSql, sql, type Sql } from "../../storage/sql.ts";
import { compileCondition, termAt, type Scope } from "./compile.ts";
import type { Place } from "./condition.ts";
import type { Aggregate } from "./fields.ts";
import type { Term } from "./term.ts";

/** `select` with the groups first, as JSON, and a column for each aggregate after them. */
export function selectAggregates(
  scope: Scope,
  groups: readonly Place[],
  aggregates: readonly Aggregate<unknown>[],
): Sql {
  const keys = groups.map(
    (place, index) => sql`${groupText(scope, termAt(scope, place))} as g${rawSql(String(index))}`,
  );
  const values = aggregates.map(
    (aggregate, index) => sql`${aggregateSql(scope, aggregate)} as f${rawSql(String(index))}`,
  );
  return sql`select ${joinSql([...keys, ...values], ", ")}`;
}

/** By position in the select, because the same expression with another parameter is another expression. */
export function groupBy(groups: readonly Place[]): Sql {
  return rawSql(groups.length === 0 ? "" : `group by ${groups.map((_, index) => index + 1).join(", ")}`);
}

function groupText({ dialect }: Scope, term: Term): Sql {
  return dialect === "sqlite" ? sql`coalesce(${term.json}, 'null')` : sql`coalesce(${term.json}, 'null'::jsonb)::text`;
}

function aggregateSql(scope: Scope, { how, at, where }: Aggregate<unknown>): Sql {
  if (how === "count" || at === null) {
    return where === null ? rawSql("count(*)") : sql`count(case when ${compileCondition(scope, where)} then 1 end)`;
  }
  const term = termAt(scope, at);
  switch (how) {
    case "sum":
      return total(scope, number(scope, term));
    case "avg":
      return average(scope, number(scope, term));
    case "avgLength":
      return average(scope, lengthOf(scope, term));
    case "min":
    case "max": {
      const best = rawSql(how);
      if (scope.dialect === "sqlite") {
        return sql`json_quote(${best}(case ${term.type} when 'text' then ${term.value} else ${number(scope, term)} end))`;
      }
      const [text, value] = [sql`to_jsonb(${best}(${term.text}))`, sql`to_jsonb(${best}(${term.number}))`];
      // Numbers come before texts.
      return how === "min" ? sql`coalesce(${value}, ${text})::text` : sql`coalesce(${text}, ${value})::text`;
    }
  }
}

// As doubles: SQLite would refuse sums of integers that do not fit into 64 bits.
function number({ dialect }: Scope, term: Term): Sql {
  return dialect === "sqlite"
    ? sql`case when ${term.type} in ('integer', 'real') then cast(${term.value} as real) end`
    : term.number;
}

function lengthOf({ dialect }: Scope, term: Term): Sql {
  return dialect === "sqlite"
    ? sql`case ${term.type} when 'array' then cast(json_array_length(${term.raw}) as real) end`
    : sql`case ${term.type} when 'array' then jsonb_array_length(${term.json}) end`;
}

function total({ dialect }: Scope, value: Sql): Sql {
  return dialect === "sqlite" ? sql`sum(${value})` : sql`sum(${value})::double precision`;
}

function average(scope: Scope, value: Sql): Sql {
  return sql`${total(scope, value)} / nullif(count(${value}), 0)`;
}
