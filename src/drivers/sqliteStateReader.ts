/**
 * Reads one state of the replica's SQLite file: the statements behind `StateReader`.
 *
 * Every read is a range of an index, so its cost follows its result. A filter is applied inside SQLite: the content of
 * a row that fails it is not transferred, but the row still counts.
 */
import { compareStrings } from "../core/surql/values/order.ts"
import { idOf } from "../node/database/replicaRecord.ts"
import { ReplicaError, type ReplicaTable, type RowFilter } from "../ports/Replica.ts"
import { originalText, storedText } from "./shared/keptText.ts"
import type { PageQuery, PlacedRow, StateReader } from "./shared/replicaRows.ts"
import type { Cell, Link } from "./shared/sqliteLink.ts"

export const metaOf = ({ all }: Link, name: "applied" | "whole" | "tables"): string | undefined => {
  const cell = all("SELECT value FROM meta WHERE name = ?", [name])[0]?.[0]
  return cell === undefined || cell === null ? undefined : String(cell)
}

export const appliedOf = (link: Link): number => {
  const text = metaOf(link, "applied") ?? "0"
  if (!/^\d+$/.test(text)) throw new ReplicaError({ reason: "damaged", message: `the replica's position is ${text}` })
  return Number(text)
}

export const tablesOf = (link: Link): ReadonlyArray<ReplicaTable> => {
  const text = metaOf(link, "tables")
  if (text === undefined) return []
  try {
    return JSON.parse(text) as ReadonlyArray<ReplicaTable>
  } catch (cause) {
    throw new ReplicaError({ reason: "damaged", message: "the replica's list of tables does not decode", cause })
  }
}

const plainName = /^[A-Za-z_]\w*$/

/**
 * SQL of a filter. A typed value is an object in the stored text, and so is a whole record with a field `$`. SQL cannot
 * compare these: they pass, and the evaluator decides.
 */
const passes = (where: RowFilter): { readonly sql: string; readonly params: ReadonlyArray<Cell> } => {
  const terms = where
    .filter(([name]) => plainName.test(name))
    .map(([name, value]) => {
      const path = `'$."${name}"'`
      const same = typeof value === "boolean" ? `json_type(content, ${path}) = '${value}'` : `content ->> ${path} = ?`
      return `(${same} OR json_type(content, ${path}) = 'object')`
    })
  const params = where.flatMap(([name, value]) => (plainName.test(name) && typeof value !== "boolean" ? [value] : []))
  return { sql: terms.length === 0 ? "1" : `(${terms.join(" AND ")}) OR substr(content, 1, 6) = '{"$":['`, params }
}

const page = ({ all }: Link, { from, size, table, to, where }: PageQuery): ReadonlyArray<PlacedRow> => {
  const filter = passes(where)
  const bounds = [from && `AND key ${from.open ? ">" : ">="} ?`, to && `AND key ${to.open ? "<" : "<="} ?`]
    .filter((bound) => bound !== undefined)
    .join(" ")
  const content = filter.sql === "1" ? "content" : `CASE WHEN ${filter.sql} THEN content ELSE length(content) END`
  const rows = all(`SELECT key, id, version, ${content} FROM record WHERE tbl = ? ${bounds} ORDER BY key LIMIT ?`, [
    ...filter.params,
    storedText(table),
    ...(from === undefined ? [] : [from.text]),
    ...(to === undefined ? [] : [to.text]),
    size
  ])
  return rows.map(([key, id, version, body]) =>
    typeof body === "string"
      ? {
          key: String(key),
          row: { id: originalText(String(id)), version: Number(version), content: body },
          chars: body.length
        }
      : { key: String(key), row: undefined, chars: Number(body) }
  )
}

/** Lists each table once, by stepping from one to the next in the index. */
const recorded = `WITH RECURSIVE names(name) AS (
  SELECT min(tbl) FROM record UNION ALL SELECT (SELECT min(tbl) FROM record WHERE tbl > name) FROM names WHERE name IS NOT NULL)
  SELECT name FROM names WHERE name IS NOT NULL`

export const namesOf = (link: Link): ReadonlyArray<string> =>
  [
    ...new Set([
      ...tablesOf(link).map(({ name }) => name),
      ...link.all(recorded).map(([name]) => originalText(String(name)))
    ])
  ].sort(compareStrings)

/** The state that the connection sees, as long as its read transaction. */
export const stateReader = (link: Link): StateReader => {
  const { all } = link
  let tables: ReadonlyMap<string, ReplicaTable> | undefined
  return {
    seq: appliedOf(link),
    find: (table, key) => {
      const [found] = all("SELECT id, version, content FROM record WHERE tbl = ? AND key = ?", [storedText(table), key])
      return found === undefined
        ? undefined
        : { id: originalText(String(found[0])), version: Number(found[1]), content: String(found[2]) }
    },
    page: (wanted) => page(link, wanted),
    edges: (record, direction, table) => {
      const end = direction === "out" ? "source" : "target"
      const rows =
        table === undefined
          ? all(`SELECT id FROM record WHERE ${end} = ? ORDER BY tbl, key`, [storedText(record.text)])
          : all(`SELECT id FROM record WHERE ${end} = ? AND tbl = ? ORDER BY key`, [
              storedText(record.text),
              storedText(table)
            ])
      return rows.map(([id]) => idOf({ id: originalText(String(id)), version: 0, content: "" }))
    },
    names: () => namesOf(link),
    types: (table) => (tables ??= new Map(tablesOf(link).map((each) => [each.name, each]))).get(table)?.types
  }
}
