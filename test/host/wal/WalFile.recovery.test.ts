/**
 * A WAL that is opened again: torn tails, damage of every kind, files that come and go.
 *
 * On a real disk, because what is checked here is what lies in real files.
 */

import {
  existsSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { Chunk, Effect, Either, Stream } from "effect"
import { describe, expect, it } from "vitest"
import * as Format from "../../../src/core/wal/walFormat.ts"
import { verify } from "../../../src/host/wal/WalFile.ts"
import type { WalFailed } from "../../../src/ports/Wal.ts"
import { FaultyDisk } from "../faultyDisk.ts"
import { freshPath, open, opened, path, reasonOf, record, texts } from "../walKit.ts"

/** A log of several files on a real disk, closed. */
const filled = async (count: number, segmentBytes?: number): Promise<string> => {
  const file = freshPath()
  const log = await opened(file, segmentBytes === undefined ? {} : { segmentBytes })
  for (let n = 1; n <= count; n++) await log.append(record(n))
  await log.close()
  return file
}

/** How many complete files a log has. */
const numbered = (file: string): number => readdirSync(join(file, "..")).filter((name) => /\.\d+$/.test(name)).length

/** Another header in place of a file's own. */
const rewrite = (file: string, header: Partial<Format.Header>): void => {
  const own = Either.getOrThrow(Format.decodeHeader(readFileSync(file)))
  writeFileSync(file, Buffer.concat([Format.encodeHeader({ ...own, ...header }), readFileSync(file).subarray(own.end)]))
}

const laterHeader = (): string => {
  const json = JSON.stringify({ svc_wal: 2 })
  return `${Format.crc32(Buffer.from(json), 0, json.length).toString(16).padStart(8, "0")} ${json}\n`
}

const fault = async (file: string): Promise<WalFailed> => {
  const all = (): string =>
    readdirSync(join(file, ".."))
      .sort()
      .map((name) => `${name} ${readFileSync(join(file, "..", name), "latin1")}`)
      .join("")
  const before = all()
  const [started, checked] = [await open(file), await Effect.runPromise(Effect.either(verify(file)))]
  expect(Either.isLeft(started) && Either.isLeft(checked) && checked.left.message).toBe(
    Either.isLeft(started) && started.left.message
  )
  expect(all(), "nothing was changed").toBe(before)
  return Either.isLeft(started) ? started.left : expect.fail("it was opened")
}

describe("a log that is opened again", () => {
  it("a torn tail is cut, seq goes on, and the check says so before", async () => {
    const file = await filled(5)
    const whole = readFileSync(file)
    truncateSync(file, whole.length - 7)
    const checked = await Effect.runPromise(verify(file))
    expect(checked.at(-1)).toMatch(/wal\.log, offset \d+: \d+ bytes of a write that is not finished/)
    const log = await opened(file)
    expect(await log.append(record(50))).toEqual(Either.right(5))
    expect(texts(await log.all())).toEqual([1, 2, 3, 4, 50].map(record))
    await log.close()
  })
  it("a bad record before good ones stops the start, naming file, offset and seq", async () => {
    const file = await filled(5)
    const bytes = readFileSync(file)
    const offset = bytes.indexOf(" 3 {") - 8
    bytes[offset + 15]! ^= 4
    writeFileSync(file, bytes)
    const error = await fault(file)
    expect(error).toMatchObject({ reason: "damaged", file, offset, seq: 3 })
    expect(error.message).toContain(`${file}, offset ${offset}, seq 3: the WAL is damaged`)
  })
  it("a file that is missing, foreign, renamed, cut or empty is damage, and a later format is refused", async () => {
    const breaks: ReadonlyArray<readonly [string, (file: string) => void, Partial<WalFailed>]> = [
      ["missing", (file) => rmSync(`${file}.2`), { reason: "damaged", offset: 0 }],
      [
        "swapped",
        (file) => {
          renameSync(`${file}.2`, `${file}.x`)
          renameSync(`${file}.3`, `${file}.2`)
          renameSync(`${file}.x`, `${file}.3`)
        },
        { reason: "damaged", offset: 0 }
      ],
      [
        "foreign",
        (file) => rewrite(`${file}.2`, { logId: "another" }),
        { reason: "damaged", offset: 0, message: expect.stringContaining("another") }
      ],
      ["misplaced", (file) => rewrite(file, { after: 0 }), { reason: "damaged", offset: 0 }],
      [
        "cut between lines",
        (file) =>
          truncateSync(`${file}.1`, readFileSync(`${file}.1`).lastIndexOf("\n", statSync(`${file}.1`).size - 2) + 1),
        { reason: "damaged", file: expect.stringContaining(".2") }
      ],
      [
        "complete, last and cut",
        (file) => {
          rmSync(file)
          truncateSync(`${file}.${numbered(file)}`, statSync(`${file}.${numbered(file)}`).size - 3)
        },
        { reason: "damaged" }
      ],
      ["cut", (file) => truncateSync(`${file}.1`, statSync(`${file}.1`).size - 3), { reason: "damaged" }],
      ["empty", (file) => writeFileSync(file, ""), { reason: "damaged", offset: 0 }],
      ["misnumbered", (file) => rewrite(file, { segment: 1 }), { reason: "damaged", offset: 0 }],
      [
        "of a later version",
        (file) => writeFileSync(file, laterHeader()),
        { reason: "newer", offset: 0, message: expect.stringMatching(/format 2, this one knows 1/) }
      ],
      ["no log", (file) => writeFileSync(file, "this is not a log\n"), { reason: "damaged", offset: 0 }]
    ]
    for (const [what, damage, expected] of breaks) {
      const file = await filled(20, 300)
      damage(file)
      expect(await fault(file), what).toMatchObject(expected)
    }
  })
  it("a log without the file that grows, as a crash leaves it, goes on behind the last complete one", async () => {
    const file = await filled(12, 300)
    renameSync(file, `${file}.${numbered(file) + 1}`)
    const log = await opened(file)
    expect(await log.append(record(13))).toEqual(Either.right(13))
    expect(existsSync(file)).toBe(true)
    expect(texts(await log.all())).toEqual(Array.from({ length: 13 }, (_, i) => record(i + 1)))
    await log.close()
  })
  it("damage that comes while the log is open is named by the reader", async () => {
    const file = freshPath()
    const log = await opened(file)
    for (let n = 1; n <= 5; n++) await log.append(record(n))
    const bytes = readFileSync(file)
    const offset = bytes.indexOf(" 3 {") - 8
    bytes[offset + 20]! ^= 1
    writeFileSync(file, bytes)
    const read = await Effect.runPromise(Effect.either(Stream.runCollect(log.wal.read(0))))
    expect(Either.isLeft(read) && read.left).toMatchObject({ reason: "damaged", file, offset, seq: 3 })
    await log.close()
  })
  it("a reader that comes between the names of two files reads the right one, and is told when what it reads was dropped", async () => {
    for (const meanwhile of ["renamed", "without a name", "dropped"] as const) {
      const disk = new FaultyDisk()
      const mounted = disk.mount()
      let between: (() => Promise<void>) | undefined
      const log = await opened(path, {
        segmentBytes: 400,
        disk: {
          ...mounted,
          open: async (name, how) => {
            const run = how === "read" ? between : undefined
            if (run === undefined) return mounted.open(name, how)
            between = undefined
            await run()
            return mounted.open(meanwhile === "without a name" ? `${name}.nowhere` : name, how)
          }
        }
      })
      for (let n = 1; n <= 2; n++) await log.append(record(n))
      between = async () => {
        for (let n = 3; n <= 9; n++) await log.append(record(n))
        if (meanwhile === "dropped") await Effect.runPromise(log.wal.dropBefore(10))
      }
      const read = await Effect.runPromise(Effect.either(Stream.runCollect(log.wal.read(0))))
      if (meanwhile === "dropped") expect(reasonOf(read)).toBe("dropped")
      else expect(texts(Chunk.toReadonlyArray(Either.getOrThrow(read)))).toEqual([record(1), record(2)])
      expect(between).toBeUndefined()
    }
  })
  it("files go when no record in them is needed", async () => {
    const file = freshPath()
    const log = await opened(file, { segmentBytes: 300 })
    for (let n = 1; n <= 100; n++) await log.append(record(n))
    const names = (): ReadonlyArray<string> => readdirSync(join(file, "..")).filter((name) => /\.\d+$/.test(name))
    const before = names().length
    for (let seq = 1; seq <= 51; seq++) {
      await Effect.runPromise(log.wal.dropBefore(seq))
      expect(Effect.runSync(log.wal.keptAfter), `seq ${seq} is kept`).toBeLessThan(seq)
    }
    expect(names().length).toBeLessThan(before / 2 + 2)
    expect(texts(await log.all(50))).toEqual(Array.from({ length: 50 }, (_, i) => record(51 + i)))
    await Effect.runPromise(log.wal.dropBefore(101))
    expect(names()).toEqual([])
    expect(statSync(file).size).toBeLessThan(200)
    await log.close()
    const again = await opened(file)
    expect(again.wal.logId).toBe(log.wal.logId)
    expect(await again.append(record(101))).toEqual(Either.right(101))
    await again.close()
  })
})
