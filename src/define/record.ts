// entity() and relation(): what is known, defined in code.
import type { StandardSchemaV1 } from "@standard-schema/spec";
import { defineEntity, defineRelation } from "../records/define/definition.ts";
import type {
  AnyEntity,
  Entity,
  EntityOptions,
  DefinedRelation,
  Nothing,
  RelationOptions,
} from "../records/define/definition.ts";

/** Defines a kind of thing that is known. Every version of every one is kept.
 *
 *  ```ts
 *  const Order = entity("order", {
 *    schema: z.object({ id: z.string(), total: z.number(), status: z.enum(["open", "paid"]) }),
 *    key: "id",
 *    indexes: ["status"],
 *  });
 *  await using shop = await open(":memory:", { use: [Order] });
 *  await shop.records.put(Order, { id: "o-17", total: 40, status: "paid" });
 *  ``` */
export function entity<Schema extends StandardSchemaV1>(
  name: string,
  options: EntityOptions<Schema>,
): Entity<StandardSchemaV1.InferInput<Schema>, StandardSchemaV1.InferOutput<Schema>> {
  return defineEntity(name, options);
}

/** Defines a relation between two entities.
 *
 *  ```ts
 *  const Person = entity("person", { schema: z.object({ id: z.string() }), key: "id" });
 *  const Knows = relation("knows", { from: Person, to: Person, schema: z.object({ since: z.number() }) });
 *  await using town = await open(":memory:", { use: [Person, Knows] });
 *  await town.records.putMany(Person, [{ id: "ada" }, { id: "bob" }]);
 *  await town.records.link(Knows, { from: "ada", to: "bob" }, { since: 2019 });
 *  ``` */
export function relation<
  From extends AnyEntity,
  To extends AnyEntity,
  Schema extends StandardSchemaV1 = StandardSchemaV1<Nothing, Nothing>,
>(name: string, options: RelationOptions<From, To, Schema>): DefinedRelation<From, To, Schema> {
  return defineRelation(name, options);
}
