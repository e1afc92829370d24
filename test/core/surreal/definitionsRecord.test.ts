/** The record of definitions in the scheduler's log: read as it was written, without what is closed to some users. */
import { expect, it } from "vitest"
import * as Definitions from "../../../src/core/surreal/definitionsRecord.ts"

const table = {
  name: "t",
  types: { "a.*": "int" },
  derived: true,
  view: "AS SELECT",
  announced: false,
  told: false,
  shape: "s"
}
const open = { name: "f", args: [["x", "int"]] as const, block: "{ $x }", returns: "int", open: true }
const closed = { ...open, name: "g", returns: undefined, open: false }
const param = { name: "p", value: "1", open: true }
const secret = { name: "s", value: "'hidden'", open: false }

it("D57 D58 it is read as it was written, and the bodies and values that no view may use are not in it", () => {
  const text = Definitions.textOf({
    tables: [table],
    definitions: {
      functions: new Map([open, closed].map((one) => [one.name, one])),
      params: new Map([param, secret].map((one) => [one.name, one]))
    }
  })
  expect(text).not.toContain("hidden")
  const { definitions, tables } = Definitions.ofText(text)
  expect(tables).toEqual([table])
  expect([...definitions.functions.values()]).toEqual([open, { ...closed, block: "" }])
  expect([...definitions.params.values()]).toEqual([param, { ...secret, value: "" }])
  expect(Definitions.textOf({ tables, definitions })).toBe(text)
})

it("D57 a text that a request to an SSP cannot hold is refused with figure and limit", () => {
  expect(Definitions.tooLong("x".repeat(2_000), 9_003)).toBe(undefined)
  expect(Definitions.tooLong("x".repeat(2_002), 9_003)).toBe(
    "the definitions of the database take 2002 characters, a request to an SSP holds 2001 for certain"
  )
})
