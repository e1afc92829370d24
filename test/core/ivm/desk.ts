/**
 * An engine with the few words tests by hand need: put and remove records, watch queries, see rows and the last deltas.
 *
 * Why so: such a test is read as a story, what is there, what changes, what must be seen; how a change is decoded,
 * planned and applied is not part of it.
 */
import { Either } from "effect"
import type { Delta } from "../../../src/core/ivm/delta/delta.ts"
import { Engine } from "../../../src/core/ivm/engine.ts"
import type { Touched, View } from "../../../src/core/ivm/view/view.ts"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { fromJson, toJson } from "../../../src/core/surql/values/json.ts"
import type { Value } from "../../../src/core/surql/values/value.ts"
import type { Json } from "./generateData.ts"
import { decode } from "./runCase.ts"

export interface Watching {
  readonly view: View
  /** The rows as JSON, in order. */
  readonly rows: () => ReadonlyArray<unknown>
  readonly keys: () => ReadonlyArray<string>
  readonly hash: () => string
  /** What the last step announced, undefined for nothing. */
  readonly delta: () => Delta | undefined
}

export const change = (id: string, record: Json | undefined, op: "CREATE" | "UPDATE" = "CREATE"): unknown => ({
  table: id.slice(0, id.indexOf(":")),
  id,
  op: record === undefined ? "DELETE" : op,
  record: record ?? {}
})

export class Desk {
  engine: Engine
  private touched: ReadonlyArray<Touched> = []

  constructor(engine: Engine = new Engine()) {
    this.engine = engine
  }

  /** Creates or replaces a record. */
  put(id: string, record: Json, op: "CREATE" | "UPDATE" = "CREATE"): this {
    return this.send(change(id, record, op))
  }

  remove(id: string): this {
    return this.send(change(id, undefined))
  }

  send(json: unknown): this {
    const [write] = this.engine.plan([decode(json)])
    this.touched = write === undefined ? [] : this.engine.apply(write)
    return this
  }

  /** Several changes as one step. */
  sendAll(jsons: ReadonlyArray<unknown>): this {
    const writes = this.engine.plan(jsons.map(decode)).filter((write) => write !== undefined)
    this.touched = this.engine.applyAll(writes)
    return this
  }

  watch(query: string, params: Json = {}): Watching {
    const select = Either.getOrThrowWith(parseSelect(query), (refused) => new Error(`${refused.message}: ${query}`))
    const view = Either.getOrThrowWith(
      this.engine.acquire(select, fromJson(params) as { readonly [name: string]: Value }),
      (refused) => new Error(`${refused.reason}: ${query}`)
    )
    return {
      view,
      rows: () => view.rows().map((row) => toJson(row.value())),
      keys: () => view.rows().map((row) => row.key),
      hash: () => view.hash(),
      delta: () => this.touched.find((one) => one.view === view)?.delta
    }
  }

  /** Instances the last step announced something for. */
  get affected(): number {
    return this.touched.length
  }
}
