/**
 * The real database inside the tests, twice: with its default planner and with its older evaluator.
 *
 * Why so: where both agree their answer is law. Answers are compared as the database's own text of the value
 * (`<string>[..]`), because that tells types apart which JSON does not.
 */
import { Either } from "effect"
import { createNodeEngines } from "@surrealdb/node"
import { Surreal } from "surrealdb"
import { fromRecords } from "../../../src/core/surql/memory.ts"
import { parseStatements } from "../../../src/core/surql/parse.ts"
import { budget } from "../../../src/core/surql/scope.ts"
import type { Source } from "../../../src/core/surql/scope.ts"
import { evaluate } from "../../../src/core/surql/select.ts"
import { render } from "../../../src/core/surql/text.ts"
import { RecordId, isObj, setField } from "../../../src/core/surql/value.ts"
import type { Obj, Value } from "../../../src/core/surql/value.ts"

export interface Engines {
  /** Answers of the default planner and of the older evaluator. */
  readonly ask: (query: string) => Promise<readonly [string, string]>
  /** Empties both and loads records, written `table:key { .. }`; those with `in` and `out` are edges. */
  readonly load: (lines: ReadonlyArray<string>, tables: ReadonlyArray<string>) => Promise<void>
  /** Sets parameters of the session, each written as a constant of the language. */
  readonly set: (params: { readonly [name: string]: string }) => Promise<void>
  readonly close: () => Promise<void>
}

const splitLine = (line: string): readonly [string, string] => {
  const at = line.indexOf(" {")
  return [line.slice(0, at), line.slice(at + 1)]
}

const isEdge = (body: string): boolean => /^\{\s*in:/.test(body)

const message = (error: unknown): string => (error instanceof Error ? error.message : String(error)).split("\n")[0]!

const askOne = async (db: Surreal, query: string): Promise<string> => {
  const text = query.startsWith("RETURN ") ? query.slice(7) : `(${query})`
  try {
    const [answer] = await db.query(`RETURN <string>[${text}]`).responses()
    return answer!.success ? String(answer.result) : "ERR " + message(answer.error)
  } catch (error) {
    return "PARSE " + message(error)
  }
}

/** Starts both engines. Cost: about a tenth of a second. */
export const start = async (): Promise<Engines> => {
  const settings = [{}, { capabilities: { planner_strategy: "compute-only" } }] as ReadonlyArray<object>
  const dbs = await Promise.all(settings.map(async (options) => {
    const db = new Surreal({ engines: createNodeEngines(options) })
    await db.connect("mem://")
    return db
  }))
  let round = 0
  return {
    ask: async (query) => [await askOne(dbs[0]!, query), await askOne(dbs[1]!, query)],
    load: async (lines, tables) => {
      round++
      const statements = lines.map((line) => {
        const [id, body] = splitLine(line)
        return isEdge(body) ? `INSERT RELATION INTO ${id.slice(0, id.indexOf(":"))} ${body.replace("{", `{ id: ${id},`)}` : `CREATE ${id} CONTENT ${body}`
      })
      for (const db of dbs) {
        await db.use({ namespace: "test", database: `d${round}` })
        await db.query([...tables.map((t) => `DEFINE TABLE ${t} TYPE ANY SCHEMALESS`), ...statements].join(";\n"))
      }
    },
    set: async (params) => {
      for (const db of dbs) for (const [name, text] of Object.entries(params)) {
        const [answer] = await db.query(`RETURN ${text}`).responses()
        if (!answer!.success) throw new Error(`${text}: ${message(answer!.error)}`)
        await db.set(name, answer!.result)
      }
    },
    close: async () => {
      for (const db of dbs) await db.close()
    }
  }
}

/** The value a constant of the language stands for. */
export const constant = (text: string): Value => {
  const parsed = Either.getOrThrowWith(parseStatements(`RETURN ${text}`), (e) => new Error(`${text}: ${e.message}`))
  return Either.getOrThrowWith(evaluate(parsed[0]!, { source: fromRecords([]), params: {}, budget: budget(1e6, "TEST") }), (e) => new Error(e.reason))
}

/** A value as it is stored: without NONE fields, however deep. */
const stored = (v: Value): Value => {
  if (Array.isArray(v)) return (v as ReadonlyArray<Value>).map(stored)
  if (!isObj(v)) return v
  const out: Record<string, Value> = {}
  for (const key of Object.keys(v)) if (v[key] !== undefined) setField(out, key, stored(v[key]))
  return out
}

/** The same records for our side. */
export const records = (lines: ReadonlyArray<string>): ReadonlyArray<Obj> => lines.map((line) => {
  const [id, body] = splitLine(line)
  const content = stored(constant(body))
  const doc: Record<string, Value> = {}
  if (isObj(content)) for (const key of Object.keys(content)) setField(doc, key, content[key])
  const key = constant(id)
  if (!(key instanceof RecordId)) throw new Error(`${id} is no record id`)
  setField(doc, "id", key)
  return doc
})

/** Our answer, in the same text. */
export const ours = (source: Source, query: string, params: { readonly [name: string]: Value } = {}): string => {
  const parsed = parseStatements(query)
  if (Either.isLeft(parsed)) return `PARSE ${parsed.left.message}`
  const answer = evaluate(parsed.right[0]!, { source, params, budget: budget(5e6, "TEST") })
  return Either.isLeft(answer) ? `ERR ${answer.left.reason}` : render([answer.right])
}

/** Equal answers; failures agree when both fail. */
export const agree = (a: string, b: string): boolean => a === b || (/^(ERR|PARSE)/.test(a) && a.slice(0, 3) === b.slice(0, 3))
