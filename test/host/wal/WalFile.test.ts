/**
 * The WAL over files: shared flushes, full and failing disks, power cuts, the lock, and how long a large one takes.
 *
 * On a disk made up in memory where a disk must misbehave, on a real one where the system itself is the point.
 */

import { execFileSync } from "node:child_process"
import { appendFileSync, existsSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Effect, Either } from "effect"
import { describe, expect, it, onTestFinished } from "vitest"
import { rng, runs, seed, seeded } from "../../../kit/data/random.ts"
import { removeFolder, temporaryFolder } from "../../../kit/processes/Door.ts"
import { lockFile } from "../../../src/host/process/fileLock.ts"
import { FaultyDisk } from "../faultyDisk.ts"
import { freshPath, type Open, onDisk, open, opened, path, reasonOf, record, texts } from "../walKit.ts"

const here = "test/host/wal/WalFile.test.ts"

/** Mounts a file system of 256 KiB until the test is over; undefined where this user may not. */
const smallDisk = ((): (() => string) | undefined => {
  const mounted = (folder: string): string => {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=256k", "tmpfs", folder], { stdio: "ignore" })
    return folder
  }
  const gone = (folder: string): void => {
    execFileSync("umount", ["-l", folder], { stdio: "ignore" })
    removeFolder(folder)
  }
  const trial = temporaryFolder()
  try {
    gone(mounted(trial))
  } catch {
    removeFolder(trial)
    return undefined
  }
  return () => {
    const folder = mounted(temporaryFolder())
    onTestFinished(() => gone(folder))
    return folder
  }
})()

describe("a WAL that shares flushes", () => {
  it("an append is flushed at once, and many that come meanwhile cost one write and one flush", async () => {
    const disk = new FaultyDisk()
    const log = await onDisk(disk)
    const before = new Map(disk.counts)
    const spent = (what: "write" | "sync"): number => disk.counts.get(what)! - before.get(what)!
    const first = log.append(record(0))
    // Without a turn of the event loop.
    for (let n = 0; n < 20; n++) await Promise.resolve()
    expect(spent("write")).toBe(1)
    const others = await Promise.all(Array.from({ length: 500 }, (_, i) => log.append(record(i))))
    expect(await first).toEqual(Either.right(1))
    expect(others.map((answer) => Either.getOrThrow(answer))).toEqual(Array.from({ length: 500 }, (_, i) => i + 2))
    expect([spent("write"), spent("sync")]).toEqual([2, 2])
    await log.close()
  })
  it("records that are not flushed are neither counted nor read", async () => {
    const disk = new FaultyDisk()
    const log = await onDisk(disk)
    await log.append(record(1))
    const second = log.append(record(2))
    while (
      disk.bytes(path).length === disk.powerCut((written) => written).bytes(path).length &&
      disk.counts.get("write")! < 3
    )
      await new Promise<void>((done) => setImmediate(done))
    const [last, records] = [Effect.runSync(log.wal.lastSeq), log.all()]
    expect(last).toBe(1)
    expect(texts(await records)).toEqual([record(1)])
    expect(await second).toEqual(Either.right(2))
    await log.close()
  })
  it("closing ends what waits, and appending afterwards says that it is closed", async () => {
    const disk = new FaultyDisk()
    const log = await onDisk(disk)
    const waiting = log.append(record(1))
    await log.close()
    expect(await waiting).toEqual(Either.right(1))
    expect(reasonOf(await log.append(record(2)))).toBe("closed")
    const again = await onDisk(disk)
    expect(texts(await again.all())).toEqual([record(1)])
  })
})

describe("a disk that is full or fails", () => {
  it("a full disk is a clear error, loses nothing, and is well again when there is room", async () => {
    const disk = new FaultyDisk()
    const log = await onDisk(disk, { segmentBytes: 512 })
    for (let n = 1; n <= 20; n++) await log.append(record(n))
    for (const room of [0, 1, 30, 59, 60, 100, 200]) {
      disk.capacity = disk.used + room
      const refused = await Promise.all(Array.from({ length: 5 }, () => log.append(...Array(5).fill(record(-1)))))
      expect(refused.map(reasonOf), `room for ${room}`).toEqual(Array(5).fill("full"))
      expect(Either.isLeft(refused[0]!) && refused[0].left.message).toMatch(
        /wal.*no room on the disk.*goes on by itself/
      )
      expect(texts(await log.all())).toHaveLength(Effect.runSync(log.wal.lastSeq))
      disk.mend()
      expect(await log.append(record(0))).toEqual(Either.right(Effect.runSync(log.wal.lastSeq)))
    }
    const found = texts(await (await onDisk(disk.processKilled())).all())
    expect(found).toEqual([...Array.from({ length: 20 }, (_, i) => record(i + 1)), ...Array(7).fill(record(0))])
  })
  it.skipIf(smallDisk === undefined)(
    "the same on a real small one, a tmpfs: what was acknowledged is there, also when it is opened again while nothing fits",
    { timeout: 60_000 },
    async () => {
      const folder = smallDisk!()
      const file = join(folder, "wal.log")
      const log = await opened(file, { segmentBytes: 32 * 1024 })
      writeFileSync(join(folder, "other"), Buffer.alloc(64 * 1024))
      const long = (n: number): string => JSON.stringify({ n, pad: "p".repeat(1000) })
      const kept: Array<string> = []
      const fill = async (of: Open): Promise<string> => {
        for (let n = 0; n < 1000; n++) {
          const answer = await of.append(long(n))
          if (Either.isLeft(answer)) return reasonOf(answer)
          kept.push(long(n))
        }
        return "it takes more than its size"
      }
      expect(await fill(log)).toBe("full")
      expect(texts(await log.all())).toEqual(kept)
      await log.close()
      const again = await opened(file, { segmentBytes: 32 * 1024 })
      expect(await fill(again)).toBe("full")
      rmSync(join(folder, "other"))
      expect(reasonOf(await again.append(record(1)))).toBe("none")
      expect(texts(await again.all())).toEqual([...kept, record(1)])
      expect(kept.length).toBeGreaterThan(100)
      await again.close()
    }
  )
  for (const operation of ["write", "sync", "truncate", "open", "rename", "syncFolder"] as const) {
    it(`after ${operation} fails nothing is acknowledged until the file was opened again and its end checked`, async () => {
      const disk = new FaultyDisk()
      const log = await onDisk(disk, { segmentBytes: 300 })
      const kept: Array<string> = []
      let reopened = 0
      for (let n = 1; n <= 60; n++) {
        if (n % 10 === 0) {
          const opens = disk.counts.get("open")!
          disk.fail(operation, "EIO")
          // Opening and cutting only matter once something else has failed.
          if (operation === "truncate" || operation === "open") disk.fail("sync", "EIO")
          const answers = await Promise.all(Array.from({ length: 3 }, () => log.append(record(1_000))))
          answers.push(await log.append(record(1_000)))
          if (operation === "rename" || operation === "syncFolder")
            kept.push(...answers.filter(Either.isRight).map(() => record(1_000)))
          else expect(answers.map(reasonOf)).toEqual(Array(4).fill("failed"))
          disk.mend()
          await log.append()
          if (answers.some(Either.isLeft)) reopened += disk.counts.get("open")! > opens ? 1 : 0
        }
        expect(reasonOf(await log.append(record(n)))).toBe("none")
        kept.push(record(n))
      }
      expect(reopened).toBeGreaterThan(operation === "rename" || operation === "syncFolder" ? 0 : 5)
      expect(texts(await log.all())).toEqual(kept)
      for (const after of [disk.processKilled(), disk.powerCut((_, flushed) => flushed)])
        expect(texts(await (await onDisk(after)).all())).toEqual(kept)
    })
  }
  it("what was refused is not there after a restart, when the disk could still cut it off", async () => {
    for (const operation of ["write", "sync"] as const) {
      const disk = new FaultyDisk()
      const log = await onDisk(disk)
      await log.append(record(1))
      disk.fail(operation, "EIO")
      expect(reasonOf(await log.append(record(2)))).toBe("failed")
      expect(texts(await (await onDisk(disk.processKilled())).all())).toEqual([record(1)])
    }
  })
  it("records that are found on opening are flushed before they count", async () => {
    const disk = new FaultyDisk()
    const log = await onDisk(disk)
    await log.append(record(1))
    disk.fail("sync", "EIO")
    disk.fail("truncate", "EIO")
    expect(reasonOf(await log.append(record(2)))).toBe("failed")
    const killed = disk.processKilled()
    expect(texts(await (await onDisk(killed)).all())).toEqual([record(1), record(2)])
    expect(texts(await (await onDisk(killed.powerCut((_, flushed) => flushed))).all())).toEqual([record(1), record(2)])
  })
  it("a flushed end that is no longer there after a fault is named, and nothing is added to it", async () => {
    const disk = new FaultyDisk()
    const log = await onDisk(disk)
    for (let n = 1; n <= 5; n++) await log.append(record(n))
    disk.fail("sync", "EIO")
    disk.fail("open", "EIO")
    await log.append(record(6))
    disk.mend()
    disk.bytes(path)[disk.bytes(path).length - 100]! ^= 1
    const refused = await log.append(record(6))
    expect(Either.isLeft(refused) && refused.left).toMatchObject({ reason: "damaged", file: path })
    expect(Effect.runSync(log.wal.lastSeq)).toBe(5)
  })
  const cuts = runs(150)
  seeded(
    `power cuts between write and flush: what was acknowledged is there, what was not is whole or not there, ${cuts} times over`,
    here,
    async (random) => {
      let disk = new FaultyDisk()
      let acknowledged: Array<string> = []
      let torn = 0
      for (let round = 0; round < cuts; round++) {
        const log = await onDisk(disk, { segmentBytes: 2_000 })
        expect(texts(await log.all(Effect.runSync(log.wal.keptAfter))).slice(0, acknowledged.length)).toEqual(
          acknowledged
        )
        acknowledged = [...texts(await log.all(Effect.runSync(log.wal.keptAfter)))]
        for (let i = random.below(6); i > 0; i--) {
          const own = record(random.below(1_000))
          await log.append(own)
          acknowledged.push(own)
        }
        if (random.chance(0.1)) {
          const seq = Effect.runSync(log.wal.lastSeq) - random.below(20)
          await Effect.runPromise(log.wal.dropBefore(seq))
          acknowledged = acknowledged.slice(
            acknowledged.length - (Effect.runSync(log.wal.lastSeq) - Effect.runSync(log.wal.keptAfter))
          )
        }
        disk.fail("sync", "EIO")
        disk.fail("truncate", "EIO")
        const lost = Array.from({ length: 1 + random.below(4) }, () => record(random.below(1_000)))
        expect(reasonOf(await log.append(...lost))).toBe("failed")
        disk = disk.powerCut((written, flushed) => {
          const end = flushed.length + random.below(written.length - flushed.length + 1)
          if (end !== flushed.length && end !== written.length) torn++
          return written.slice(0, end)
        })
      }
      expect(torn).toBeGreaterThan(cuts / 3)
    }
  )
  it("a crash at any point of beginning the next file loses nothing", async () => {
    let crashed = 0
    for (const operation of ["open", "rename", "truncate", "syncFolder"] as const) {
      for (let count = 0; count < 12; count++) {
        const disk = new FaultyDisk()
        const log = await onDisk(disk, { segmentBytes: 200 })
        const kept: Array<string> = []
        for (let n = 1; n <= 12; n++) {
          if (n === count) disk.fail(operation, "EIO")
          if (Either.isRight(await log.append(record(n)))) kept.push(record(n))
        }
        if (kept.length < 12) crashed++
        for (const after of [
          disk.processKilled(),
          disk.powerCut((_, flushed) => flushed),
          disk.powerCut((_, flushed) => flushed, "arrived")
        ]) {
          const again = await onDisk(after, { segmentBytes: 200 })
          expect(texts(await again.all()), `${operation} from append ${count}`).toEqual(kept)
          expect(await again.append(record(99))).toEqual(Either.right(kept.length + 1))
        }
      }
    }
    expect(crashed).toBeGreaterThan(10)
  })
})

describe("the lock of a WAL", () => {
  it("keeps a second opener out, and is free once the first is closed", async () => {
    const file = freshPath()
    const first = await opened(file)
    const second = await open(file)
    expect(Either.isLeft(second) && second.left).toMatchObject({
      reason: "locked",
      message: expect.stringContaining(file)
    })
    await first.close()
    await (await opened(file)).close()
  })
  it("goes to one of many that find it left behind by a process that is gone", async () => {
    for (let round = 0; round < 30; round++) {
      const lock = `${freshPath()}.lock`
      writeFileSync(lock, "")
      const locks = await Promise.all(Array.from({ length: 8 }, () => lockFile(lock)))
      expect(locks.filter((one) => one?.held() === true)).toHaveLength(1)
      for (const one of locks) await one?.release()
      expect(readdirSync(join(lock, "..")), "nothing is left").toEqual([])
    }
  })
  it("works under a name longer than a socket's may be", async () => {
    const file = join(freshPath(), "..", "d".repeat(100), "wal.log")
    const first = await opened(file)
    expect(reasonOf(await open(file))).toBe("locked")
    await first.close()
    await (await opened(file)).close()
  })
  it("a process that has lost it adds nothing more", async () => {
    const file = freshPath()
    const first = await opened(file)
    await first.append(record(1))
    rmSync(`${file}.lock`)
    const second = await opened(file)
    expect(reasonOf(await first.append(record(2)))).toBe("locked")
    expect(await second.append(record(3))).toEqual(Either.right(2))
    await first.close()
    expect(existsSync(`${file}.lock`), "the lock of the other stays").toBe(true)
    expect(await second.append(record(4))).toEqual(Either.right(3))
    await second.close()
  })
})

describe("a log of 100,000 records", () => {
  it("is checked on opening, and read from any position in the time it takes to read the rest", async () => {
    const file = freshPath()
    const random = rng(seed)
    const log = await opened(file, { segmentBytes: 4 * 1024 * 1024 })
    const body = JSON.stringify({ table: "post", op: "UPDATE", id: "post:1", record: { text: "t".repeat(200) } })
    for (let n = 0; n < 100; n++) await log.append(...Array.from({ length: 1_000 }, () => body))
    await log.close()
    appendFileSync(file, "torn")
    const again = await opened(file)
    expect(Effect.runSync(again.wal.lastSeq)).toBe(100_000)
    for (let i = 0; i < 5; i++) {
      const after = random.below(100_000)
      const records = await again.all(after)
      expect([records.length, records[0]?.seq, records.at(-1)?.seq]).toEqual([100_000 - after, after + 1, 100_000])
    }
    await again.close()
  })
})
