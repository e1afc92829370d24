/**
 * Hashes of records on the wire (D41, extension), for SSP and scheduler: tables, nodes, and differences from the
 * database.
 *
 * One form for both, because the scheduler finds differences by asking an SSP for the nodes that the scheduler has
 * itself.
 */
import { Schema } from "effect"
import { bucketLevel, fanOut } from "../core/integrity/merkle.ts"
import * as Examples from "./examples.ts"

const count = Schema.Int.pipe(Schema.nonNegative())
const hash = Schema.String.annotations({ description: "64 hexadecimal digits; all 0 where there is nothing" })
const seq = Schema.NullOr(count).annotations({
  description: "Position in the scheduler's log that the hashes belong to; null where there is none"
})

const whole = (last: number) =>
  Schema.NumberFromString.pipe(Schema.int(), Schema.between(0, last)).annotations({
    message: () => ({ message: `must be a whole number from 0 to ${last}`, override: true })
  })

export const NodeQuery = {
  table: Schema.optional(Schema.String).annotations({ description: "Absent: the roots of all tables" }),
  level: Schema.optional(whole(bucketLevel)).annotations({ description: "0 (default) the root, 1, 2 the buckets" }),
  index: Schema.optional(whole(fanOut ** bucketLevel - 1)).annotations({
    description: "Place in its level, 0 by default; the children of i are 256 i to 256 i + 255"
  })
}

/** Number of nodes on a level. */
export const nodesOnLevel = (level: number): number => fanOut ** level

const Child = Schema.Struct({ index: count, hash, count })

const Leaf = Schema.Struct({ id: Schema.String, hash, version: Schema.optional(count) })

/** One node with its content: `children` above the buckets, `records` of a bucket; empty nodes are left out. */
export const Node = Schema.Struct({
  seq,
  table: Schema.String,
  level: count,
  index: count,
  hash,
  count,
  children: Schema.optional(Schema.Array(Child)),
  records: Schema.optional(Schema.Array(Leaf))
}).annotations({ identifier: "IntegrityNode", examples: [Examples.integrityNode], description: "D41" })

export const Tables = Schema.Struct({
  seq,
  tables: Schema.Array(Schema.Struct({ table: Schema.String, hash, count })),
  holds: Schema.optional(Schema.Array(Schema.String)).annotations({
    description: "Of an SSP that holds some tables and no others (D61): those, with records or without"
  })
}).annotations({ identifier: "IntegrityTables", examples: [Examples.integrityTables], description: "D41" })

/** Kind of difference: the record is `missing` in memory, `extra` in memory, or `different`. */
const Difference = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literal("missing", "extra", "different"),
  version: Schema.NullOr(count).annotations({ description: "In memory" }),
  database_version: Schema.NullOr(count).annotations({
    description: "The record's own `_svc_rv` in the database, where it has one"
  })
})

export const Comparison = Schema.Struct({
  tables: Schema.Array(Schema.String),
  compared: count.annotations({ description: "Records of the database" }),
  different: count,
  differences: Schema.Array(Difference).annotations({ description: "The first 10,000 by table and key" })
}).annotations({ identifier: "IntegrityComparison", examples: [Examples.comparison] })

export const Reconciled = Schema.Struct({ compared: count, repaired: Schema.Array(Schema.String) }).annotations({
  identifier: "Reconciled",
  examples: [Examples.reconciled],
  description: "Ids of the records that differed and now do not"
})
