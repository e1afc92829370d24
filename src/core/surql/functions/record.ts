/**
 * `record::*` and `meta::*`: parts of a record id, and whether there is such a record.
 *
 * Why so: those that look at other records say so, so that nothing takes them for constants.
 */
import { raise } from "../evaluate/failure.ts"
import { chargedRecordOf, recordOf } from "../evaluate/paths.ts"
import { spendSteps } from "../evaluate/scope.ts"
import { rowsOf } from "../evaluate/select/sources.ts"
import type { Value } from "../values/value.ts"
import { field, isObj, RecordRange, type RecordValue } from "../values/value.ts"
import type { Table } from "./define.ts"
import { define } from "./define.ts"

const keyOf = (id: RecordValue): Value => (id instanceof RecordRange ? id.range : (id.key as Value))

export const record: Table = {
  "record::exists": define<[RecordValue]>(
    ["record"],
    ([id], scope) => {
      spendSteps(scope.budget, 1)
      if (id instanceof RecordRange) {
        for (const _ of rowsOf(scope, id)) return true
        return false
      }
      return scope.source.record(id) !== undefined
    },
    { reads: true }
  ),
  "record::id": define<[RecordValue]>(["record"], ([id]) => keyOf(id)),
  "record::is_edge": define<[Value]>(
    ["record|string"],
    ([v], scope) => {
      if (v instanceof RecordRange) return false
      const id = chargedRecordOf(v, scope)
      if (id === undefined) return raise`Incorrect arguments for function record::is_edge(). Expected a record ID`
      const doc = scope.source.record(id)
      return isObj(doc) && recordOf(field(doc, "in")) !== undefined && recordOf(field(doc, "out")) !== undefined
    },
    { reads: true }
  ),
  "record::table": define<[RecordValue]>(["record"], ([id]) => id.table),
  "record::tb": define<[RecordValue]>(["record"], ([id]) => id.table),
  "meta::id": define<[RecordValue]>(["record"], ([id]) => keyOf(id)),
  "meta::tb": define<[RecordValue]>(["record"], ([id]) => id.table)
}
