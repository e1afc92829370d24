/**
 * A view followed in format rows beside the laws: what the deltas tell is applied, and the list must be the result.
 */

import { applied, type RowsDeltaJson } from "../../../kit/checks/followRows.ts"
import type { Touched, View } from "../../../src/core/ivm/view/view.ts"
import * as JsonText from "../../../src/core/jsonText.ts"
import { RowList } from "../../../src/core/rows/rowList.ts"
import { deltaText, noteTouched } from "../../../src/core/rows/rowsText.ts"
import { drain } from "../../../src/core/surql/evaluate/scope.ts"
import { toJson } from "../../../src/core/surql/values/json.ts"
import { broken } from "./checks.ts"

export class FollowedRows {
  private readonly view: View
  private readonly tally: { rows: number; patched: number }
  private readonly list: RowList
  private rows: ReadonlyArray<unknown>
  private touched = new Map<string, boolean>()
  private steps = 0

  constructor(view: View, tally: FollowedRows["tally"]) {
    this.view = view
    this.tally = tally
    this.list = new RowList(view, Infinity, 0)
    drain(this.list.fill())
    this.rows = Array.from(this.list.texts(), (text) => JsonText.parse(text))
  }

  /** A step has changed the view. Some are told together. */
  step({ delta }: Touched): void {
    noteTouched(this.touched, delta)
    if (++this.steps % 3 === 0) return
    const text = deltaText(this.list.turn(this.touched), this.view.hash(), undefined)
    this.touched = new Map()
    const told = JsonText.parse(text) as RowsDeltaJson
    this.rows = applied(this.rows, told)
    const { insert = [], patch = [], remove = [], update = [] } = told
    this.tally.patched += patch.length
    this.tally.rows += remove.length + insert.length + update.length + patch.length
    const now = this.view.rows().map((row) => canonical(toJson(row.value()) ?? null))
    const held = this.rows.map(canonical)
    if (now.length !== held.length || now.some((row, i) => row !== held[i]))
      broken(`L2 rows that are told make ${held.join(" ")}, the result is ${now.join(" ")}; told: ${text}`)
    const chars = Array.from(this.list.texts()).reduce((sum, { length }) => sum + length, 0)
    if (chars !== this.list.chars) broken(`the list counts ${this.list.chars} characters and has ${chars}`)
  }
}

/** Fields in one order: a field that was added by path stands last. */
const canonical = (value: unknown): string =>
  JSON.stringify(value, (_, inner: unknown) =>
    typeof inner === "bigint"
      ? { bigint: String(inner) }
      : typeof inner === "object" && inner !== null && !Array.isArray(inner)
        ? Object.fromEntries(Object.entries(inner).sort(([a], [b]) => (a < b ? -1 : 1)))
        : inner
  ) ?? "null"
