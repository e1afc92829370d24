/**
 * The real database inside the tests, twice: with its default planner and with its older evaluator.
 *
 * Why so: where both agree their answer is law. Answers are compared as the database's own text of the value
 * (`<string>[..]`), because that tells types apart which JSON does not. Nothing of ours is imported here: the process
 * of judgeMain.ts starts in a third of the time.
 */
import { createNodeEngines } from "@surrealdb/node"
import { Surreal } from "surrealdb"

export interface Engines {
  /** Answers of the default planner and of the older evaluator. */
  readonly ask: (query: string) => Promise<readonly [string, string]>
  /** As {@link ask}, for many expressions at once: `RETURN` stands in front of each. */
  readonly askMany: (expressions: ReadonlyArray<string>) => Promise<ReadonlyArray<readonly [string, string]>>
  /** Empties both and loads records, written `table:key { .. }`; those with `in` and `out` are edges. */
  readonly load: (lines: ReadonlyArray<string>, tables: ReadonlyArray<string>) => Promise<void>
  /** Sets parameters of the session, each written as a constant of the language. */
  readonly set: (params: { readonly [name: string]: string }) => Promise<void>
  readonly close: () => Promise<void>
}

/** The id of a line and its content, which begins with the first brace behind a space that is in no bracket. */
export const splitLine = (line: string): readonly [string, string] => {
  let depth = 0
  for (const { 0: token, index } of line.matchAll(/ \{|'(?:[^'\\]|\\.)*'|[[{]|[\]}]/g)) {
    if (token === " {" && depth === 0) return [line.slice(0, index), line.slice(index + 1)]
    if (!token.startsWith("'")) depth += /[\]}]/.test(token) ? -1 : 1
  }
  throw new Error(`no content: ${line}`)
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

/** Every expression a statement of one query; where one does not parse, the halves by themselves. */
const askAll = async (db: Surreal, expressions: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  try {
    const answers = await db.query(expressions.map((text) => `RETURN <string>[${text}]`).join(";\n")).responses()
    return answers.map((answer) => (answer.success ? String(answer.result) : "ERR " + message(answer.error)))
  } catch (error) {
    if (expressions.length === 1) return ["PARSE " + message(error)]
    const middle = expressions.length >> 1
    return [...(await askAll(db, expressions.slice(0, middle))), ...(await askAll(db, expressions.slice(middle)))]
  }
}

/** Starts both engines. Cost: about a tenth of a second. */
export const start = async (): Promise<Engines> => {
  const settings = [{}, { capabilities: { planner_strategy: "compute-only" } }] as ReadonlyArray<object>
  const dbs = await Promise.all(
    settings.map(async (options) => {
      const db = new Surreal({ engines: createNodeEngines(options) })
      await db.connect("mem://")
      return db
    })
  )
  let round = 0
  return {
    ask: async (query) => [await askOne(dbs[0]!, query), await askOne(dbs[1]!, query)],
    askMany: async (expressions) => {
      const [planner, older] = await Promise.all(dbs.map((db) => askAll(db, expressions)))
      return expressions.map((_, i) => [planner![i]!, older![i]!])
    },
    load: async (lines, tables) => {
      round++
      const statements = lines.map((line) => {
        const [id, body] = splitLine(line)
        return isEdge(body)
          ? `INSERT RELATION INTO ${id.slice(0, id.indexOf(":"))} ${body.replace("{", `{ id: ${id},`)}`
          : `CREATE ${id} CONTENT ${body}`
      })
      for (const db of dbs) {
        await db.use({ namespace: "test", database: `d${round}` })
        await db.query([...tables.map((t) => `DEFINE TABLE ${t} TYPE ANY SCHEMALESS`), ...statements].join(";\n"))
      }
    },
    set: async (params) => {
      for (const db of dbs)
        for (const [name, text] of Object.entries(params)) {
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
