/**
 * The page about the engine: the files and names that it cites are there, and an index that is added as it says is told
 * of every write.
 *
 * Because a newcomer follows it step by step, and a name that has changed since ends the way.
 */
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root, trackedFiles } from "../../kit/rules/source.ts"
import { Desk } from "../core/ivm/desk.ts"

const page = readFileSync(join(root, "docs/engine.md"), "utf8")
const cited = [...page.matchAll(/`([^`\n]+)`/g)].map(([, text]) => text!)

/** The page names files as they are found from here. */
const places = ["src/core/ivm", "src/core", "", "test/core/ivm"]

it("names files that are there", () => {
  const paths = cited.filter((text) => /^[\w./-]+\.ts$/.test(text))
  expect(paths.length).toBeGreaterThan(20)
  expect(paths.filter((path) => !places.some((place) => existsSync(join(root, place, path))))).toEqual([])
})

it("names classes and functions that are there", () => {
  const paths = trackedFiles().filter((path) => path.startsWith("src/core/"))
  const text = paths.map((path) => readFileSync(join(root, path), "utf8")).join("\n")
  const names = cited.filter((name) => /^[A-Za-z]+$/.test(name) && /[a-z]/.test(name))
  expect(names.length).toBeGreaterThan(40)
  expect(names.filter((name) => !new RegExp(`\\b${name}\\b`).test(text))).toEqual([])
})

it("L3 an index that is joined to its table is told of each write, when the slot has its new state", () => {
  const desk = new Desk()
  desk.put("post:1", { n: 1 })
  const told: Array<unknown> = []
  desk.engine.store.table("post").indexes.push({
    move: (slot, before, after) => told.push([slot.id.text, before?.["n"], after?.["n"], slot.doc === after])
  })
  desk.put("post:1", { n: 2 })
  desk.put("post:2", { n: 3 })
  desk.put("user:1", { n: 4 })
  desk.remove("post:1")
  expect(told).toEqual([
    ["post:1", 1, 2, true],
    ["post:2", undefined, 3, true],
    ["post:1", 2, undefined, true]
  ])
})
