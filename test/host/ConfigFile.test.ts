/**
 * The configuration file as it lies on disk: found, read, refused with a reason.
 *
 * Why with real files: paths, encodings and YAML's own traps are what operators meet.
 */

import { execFileSync } from "node:child_process"
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, afterEach, describe, expect, it } from "vitest"
import { removeFolder, temporaryFolder } from "../../kit/processes/Door.ts"
import * as ConfigFile from "../../src/host/ConfigFile.ts"
import { ConfigSource } from "../../src/ports/ConfigSource.ts"

const folder = temporaryFolder()
const before = process.env["SVC_CONFIG_PATH"]
afterEach(() => {
  if (before === undefined) delete process.env["SVC_CONFIG_PATH"]
  else process.env["SVC_CONFIG_PATH"] = before
})
afterAll(() => removeFolder(folder))

const bomb = [
  "a: &a [x, x, x, x, x, x, x, x, x]",
  ...["b", "c", "d", "e", "f", "g"].map(
    (name, i) => `${name}: &${name} [${Array(9).fill(`*${"abcdef"[i]}`).join(", ")}]`
  )
].join("\n")

describe("configuration file", () => {
  it("D5a is read where SVC_CONFIG_PATH says, or refused with a reason that names the line", async () => {
    const read = async (name: string, text?: string) => {
      const path = join(folder, name)
      if (text !== undefined) writeFileSync(path, text)
      process.env["SVC_CONFIG_PATH"] = path
      return (await Effect.runPromise(Effect.provide(ConfigSource, ConfigFile.layer))).file
    }
    expect(await read("good.yml", "a: 1\nb: ${X}\n")).toMatchObject({ content: { a: 1, b: "${X}" }, fault: undefined })
    expect(await read("empty.yml", "")).toMatchObject({ content: null, fault: undefined })
    expect((await read("missing.yml"))?.fault).toMatch(/cannot be read/)
    expect((await read("broken.yml", "a: 1\nb: [1\nc: 2\n"))?.fault).toMatch(/^line [234] is not YAML/)
    expect((await read("twice.yml", "a: 1\na: 2\n"))?.fault).toBe('line 2 has the key "a" twice')
    expect((await read("bomb.yml", bomb))?.fault).toMatch(/is not usable YAML/)
    expect((await read("."))?.fault).toMatch(/not a regular file/)
  })

  it("D5a what has no end, or is made to take long, is refused by name: devices, pipes, large files, aliases, nesting, thousands of keys", async () => {
    const read = async (path: string, text?: string) => {
      if (text !== undefined) writeFileSync(path, text)
      process.env["SVC_CONFIG_PATH"] = path
      return (await Effect.runPromise(Effect.provide(ConfigSource, ConfigFile.layer))).file
    }
    const pipe = join(folder, "pipe"),
      file = join(folder, "hostile.yml")
    execFileSync("mkfifo", [pipe])
    for (const path of ["/dev/zero", pipe]) expect((await read(path))?.fault, path).toMatch(/not a regular file/)
    expect((await read(file, `a: ${"x".repeat(1024 * 1024)}`))?.fault).toMatch(/1048576 are allowed/)
    expect((await read(file, "a: 1\nb: &b\n  c: *b\n"))?.fault).toBe(
      "line 3 has the alias *b inside what it stands for"
    )
    expect((await read(file, "a: &a [[*a]]\n"))?.fault).toBe("line 1 has the alias *a inside what it stands for")
    const lines = (count: number, line: (n: number) => string): string =>
      `a:\n${Array.from({ length: count }, (_, n) => line(n)).join("")}`
    expect(
      (
        await read(
          file,
          lines(20_000, (n) => ` - &a${n} x\n - *a${n}\n`)
        )
      )?.fault
    ).toMatch(/^line \d+ has more than 100 aliases$/)
    expect((await read(file, `${"[".repeat(100)}${"]".repeat(100)}`))?.fault).toMatch(/nested more than 64 levels/)
    expect((await read(file, `${"[".repeat(20_000)}${"]".repeat(20_000)}`))?.fault).toMatch(/YAML|nested/)
    expect(
      await read(
        file,
        lines(20_000, (n) => ` k${n}: 1\n`)
      )
    ).toMatchObject({ fault: undefined, content: { a: { k19999: 1 } } })
    expect(await read(file, "a: &a { n: 1 }\nb: *a\nc: { d: *a }\n")).toMatchObject({
      fault: undefined,
      content: { b: { n: 1 }, c: { d: { n: 1 } } }
    })
  })
})
