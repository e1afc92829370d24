/**
 * The configuration file as it lies on disk: found, read, refused with a reason.
 *
 * Why with real files: paths, encodings and YAML's own traps are what operators meet.
 */
import { Effect } from "effect"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import * as ConfigFile from "../../src/host/ConfigFile.ts"
import { ConfigSource } from "../../src/ports/ConfigSource.ts"
import { removeFolder, temporaryFolder } from "../kit/Door.ts"

const folder = temporaryFolder()
const before = process.env["SVC_CONFIG_PATH"]
afterEach(() => {
  if (before === undefined) delete process.env["SVC_CONFIG_PATH"]
  else process.env["SVC_CONFIG_PATH"] = before
  removeFolder(folder)
})

const bomb = ["a: &a [x, x, x, x, x, x, x, x, x]", ...["b", "c", "d", "e", "f", "g"].map((name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdef"[i]}`).join(", ")}]`)].join("\n")

describe("configuration file", () => {
  it("D5a is read where SVC_CONFIG_PATH says, or refused with a reason that names the line", () => {
    const read = (name: string, text?: string) => {
      const path = join(folder, name)
      if (text !== undefined) writeFileSync(path, text)
      process.env["SVC_CONFIG_PATH"] = path
      return Effect.runSync(Effect.provide(ConfigSource, ConfigFile.layer)).file
    }
    expect(read("good.yml", "a: 1\nb: ${X}\n")).toMatchObject({ content: { a: 1, b: "${X}" }, fault: undefined })
    expect(read("empty.yml", "")).toMatchObject({ content: null, fault: undefined })
    expect(read("missing.yml")?.fault).toMatch(/cannot be read/)
    expect(read("broken.yml", "a: 1\nb: [1\nc: 2\n")?.fault).toMatch(/^line [234] is not YAML/)
    expect(read("twice.yml", "a: 1\na: 2\n")?.fault).toMatch(/^line 2 is not YAML/)
    expect(read("bomb.yml", bomb)?.fault).toMatch(/is not usable YAML/)
    expect(read(".")?.fault).toMatch(/cannot be read/)
  })
})
