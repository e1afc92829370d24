/**
 * What the server should hold, kept by the test: every record's content as sent, and its version as D4 defines it.
 *
 * Why typed by the service's own reader: typing at the door (D1) has tests of its own; here it must only be the same on
 * both sides, so that a difference between a view and a fresh run is the engine's.
 */
import { isDeepStrictEqual } from "node:util"
import { fromJson } from "../../src/core/surql/values/json.ts"
import { parseLenient } from "../../src/core/surql/values/recordId.ts"
import type { Obj, RecordId } from "../../src/core/surql/values/value.ts"
import type { JsonObject } from "../data/dataset.ts"

export interface Held {
  readonly id: RecordId
  /** As sent in the request. */
  readonly sentId: string
  readonly json: JsonObject
  readonly doc: Obj
  /** Exact, unless the record came back after a DELETE: then it is only known to be above `above`. */
  version: number | undefined
  readonly above: number
}

export class Mirror {
  readonly #records = new Map<string, Held>()
  readonly #lastVersions = new Map<string, number>()

  static idOf(sent: string): RecordId {
    const id = parseLenient(sent)
    if (id === undefined) throw new Error(`not a record id: ${sent}`)
    return id
  }

  put(sentId: string, json: JsonObject): void {
    const id = Mirror.idOf(sentId)
    const old = this.#records.get(id.text)
    const doc = { ...(fromJson(json) as Obj), id }
    const last = this.#lastVersions.get(id.text)
    if (old === undefined)
      this.#records.set(id.text, {
        id,
        sentId,
        json,
        doc,
        version: last === undefined ? 1 : undefined,
        above: last ?? 0
      })
    else if (isDeepStrictEqual(old.json, json)) return
    else
      this.#records.set(id.text, {
        id,
        sentId,
        json,
        doc,
        version: old.version === undefined ? undefined : old.version + 1,
        above: old.above
      })
  }

  delete(sentId: string): void {
    const id = Mirror.idOf(sentId)
    const old = this.#records.get(id.text)
    if (old === undefined) return
    this.#lastVersions.set(id.text, Math.max(old.version ?? 0, old.above, this.#lastVersions.get(id.text) ?? 0))
    this.#records.delete(id.text)
  }

  get(text: string): Held | undefined {
    return this.#records.get(text)
  }

  get size(): number {
    return this.#records.size
  }

  all(table?: string): ReadonlyArray<Held> {
    const held = [...this.#records.values()]
    return table === undefined ? held : held.filter((record) => record.id.table === table)
  }

  /** Holds a version the server showed against what is known, and learns it where only a bound was known. */
  expectVersion(text: string, shown: number): string | undefined {
    const held = this.#records.get(text)
    if (held === undefined) return `${text} should not exist`
    if (held.version === undefined) {
      if (!Number.isInteger(shown) || shown <= held.above)
        return `${text} came back with version ${shown}, its last one was ${held.above}`
      held.version = shown
    }
    return held.version === shown ? undefined : `${text} has version ${shown}, should have ${held.version}`
  }
}
