/**
 * The database itself, embedded, on a file system in memory: `live` watches with LIVE SELECT, `requery` asks again
 * after each write.
 *
 * Why two: LIVE SELECT takes a filter but no order, limit, group or subquery, and says nothing when a record leaves the
 * filter, so it is quick and, where records move, wrong. Asking again is right; like the other peers that ask again, it
 * asks only for the views a change can concern, over the indexes they want.
 */
import { mkdtempSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { createNodeEngines } from "@surrealdb/node"
import { RecordId, Surreal, type Uuid } from "surrealdb"
import type { Answer, Change, Peer, Row, Workload, WorkloadName } from "../program.ts"
import { queries } from "./ours.ts"

const indexes: { readonly [name in WorkloadName]?: ReadonlyArray<string> } = {
  W1: ["ON post FIELDS author"],
  W2: ["ON post FIELDS published, likes"],
  W3: ["ON post FIELDS published, created_at"],
  W4: ["ON thread FIELDS author", "ON comment FIELDS thread"],
  W6: ["ON sale FIELDS category"],
  W7: ["ON post FIELDS author, created_at"]
}

const toRecord = (work: Workload, table: string, row: Row): { readonly [field: string]: unknown } => {
  const { refs } = work.tables[table]!
  return Object.fromEntries(
    Object.entries(row).map(([field, value]) => [
      field,
      field === "id"
        ? new RecordId(table, row.id)
        : refs[field] === undefined
          ? value
          : new RecordId(refs[field], value as number)
    ])
  )
}

const fromRecord = (value: unknown): unknown => {
  if (value instanceof RecordId) return value.id
  if (Array.isArray(value)) return value.map(fromRecord)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([field, part]) => [field, fromRecord(part)]))
}

interface Write {
  readonly text: string
  readonly params: { readonly [name: string]: unknown }
  readonly change: Change
}

const perInsert = 1000

/** What both programs share: a database with the rows and the indexes, and the write of a change. */
const open = async (work: Workload) => {
  const db = new Surreal({ engines: createNodeEngines() })
  // Its own memory store takes bulk loads badly; the same engine's other store does not, on a file system in memory.
  await db.connect(`surrealkv://${mkdtempSync(join(process.env["BENCH_SCRATCH"] ?? tmpdir(), "db-"))}`)
  await db.query("DEFINE NAMESPACE bench")
  await db.use({ namespace: "bench" })
  await db.query("DEFINE DATABASE bench")
  await db.use({ namespace: "bench", database: "bench" })
  const load = async (): Promise<void> => {
    for (const table of Object.keys(work.tables)) await db.query(`DEFINE TABLE ${table}`)
    for (const [table, rows] of Object.entries(work.rows)) {
      for (let from = 0; from < rows.length; from += perInsert) {
        await db.query(`INSERT INTO ${table} $rows RETURN NONE`, {
          rows: rows.slice(from, from + perInsert).map((row) => toRecord(work, table, row))
        })
      }
    }
    for (const [n, index] of (indexes[work.name] ?? []).entries()) await db.query(`DEFINE INDEX by_${n} ${index}`)
  }
  const prepare = (change: Change): Write => {
    const { table, before, after } = change
    const id = new RecordId(table, (after ?? before)!.id)
    if (after === undefined) return { text: "DELETE $id RETURN NONE", params: { id }, change }
    return {
      text: before === undefined ? "CREATE $id CONTENT $doc RETURN NONE" : "UPDATE $id CONTENT $doc RETURN NONE",
      params: { id, doc: toRecord(work, table, after) },
      change
    }
  }
  return { db, load, prepare, close: async () => void (await db.close()) }
}

const byAuthor = (work: Workload): boolean => work.name === "W1" || work.name === "W7"

export const requery: Peer = async (work) => {
  if (indexes[work.name] === undefined) return undefined
  const { db, load, prepare, close } = await open(work)
  const results: Array<unknown> = []
  const threads = new Map<number, unknown>()
  const ask = async (view: number): Promise<void> => {
    ;[results[view]] = await db.query(queries[work.name], { author: new RecordId("user", view) })
  }
  /** One thread of W4, or none. */
  const askThread = async (id: number): Promise<void> => {
    const [rows] = await db.query<[ReadonlyArray<unknown>]>(queries.W4.replace(/FROM thread$/, "FROM $id"), {
      id: new RecordId("thread", id)
    })
    if (rows[0] === undefined) threads.delete(id)
    else threads.set(id, rows[0])
  }
  const follow = async ({ table, before, after }: Change): Promise<void> => {
    const row = (after ?? before)!
    if (byAuthor(work))
      for (const author of new Set([before?.["author"], after?.["author"]]))
        await (author === undefined ? undefined : ask(author as number))
    else if (work.name !== "W4") await ask(0)
    else if (table === "thread") await askThread(row.id)
    else if (table === "comment")
      for (const thread of new Set([before?.["thread"], after?.["thread"]]))
        await (thread === undefined ? undefined : askThread(thread as number))
    else {
      const [ids] = await db.query<[ReadonlyArray<RecordId>]>("SELECT VALUE id FROM thread WHERE author = $author", {
        author: new RecordId("user", row.id)
      })
      for (const { id } of ids) await askThread(id as number)
    }
  }
  return {
    load,
    prepare,
    close,
    register: async () => {
      if (work.name !== "W4") for (let view = 0; view < work.views; view++) await ask(view)
      else for (const { id } of work.rows["thread"]!) await askThread(id)
    },
    apply: async (input) => {
      const { text, params, change } = input as Write
      await db.query(text, params)
      await follow(change)
    },
    result: (view) => fromRecord(work.name === "W4" ? [...threads.values()] : results[view]) as Answer,
    plan: () => "the views that the change concerns, asked again"
  }
}

/** Longest wait for a notification; on an idle machine they take less than a millisecond. */
const patienceMs = 50

export const live: Peer = async (work) => {
  if (work.name !== "W1" && work.name !== "W2") return undefined
  const { db, load, prepare, close } = await open(work)
  const results: Array<Map<unknown, unknown>> = []
  let [told, missed] = [0, 0]
  let wake: (() => void) | undefined
  const concerned = (row: Row): boolean =>
    work.name === "W1" || (row["published"] === true && (row["likes"] as number) >= 50)
  const heard = (): Promise<void> =>
    new Promise((done) => {
      const timer = setTimeout(() => {
        missed++
        done()
      }, patienceMs)
      wake = () => {
        clearTimeout(timer)
        done()
      }
    })
  return {
    load,
    prepare,
    close,
    register: async () => {
      for (let view = 0; view < work.views; view++) {
        const params = { author: new RecordId("user", view) }
        const [id] = await db.query<[Uuid]>(`LIVE ${queries[work.name]}`, params)
        const [rows] = await db.query<[ReadonlyArray<Row>]>(queries[work.name], params)
        const result = new Map<unknown, unknown>(rows.map((row) => [String(row.id), row]))
        results.push(result)
        const subscription = await db.liveOf(id)
        subscription.subscribe(({ action, recordId, value }) => {
          if (action === "DELETE") result.delete(String(recordId))
          else if (recordId !== undefined) result.set(String(recordId), value)
          told++
          wake?.()
        })
      }
    },
    apply: async (input) => {
      const { text, params, change } = input as Write
      const expected = concerned((change.after ?? change.before)!) ? told + 1 : told
      await db.query(text, params)
      if (told < expected) await heard()
      wake = undefined
    },
    settle: () => new Promise((done) => setTimeout(done, 200)),
    result: (view) => fromRecord([...results[view]!.values()]) as Answer,
    plan: () => `a LIVE SELECT per view, ${told} notifications, ${missed} waited for in vain`
  }
}
