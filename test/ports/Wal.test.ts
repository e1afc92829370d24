/**
 * The layers of `Wal`: memory, files, and files on a disk that this process makes up, each through the conformance
 * suite.
 *
 * Small files besides, because seams between files are where positions get lost.
 */

import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Layer } from "effect"
import { afterAll, expect, test } from "vitest"
import { layerFile } from "../../src/host/wal/WalFile.ts"
import { startFault, Wal, WalFailed } from "../../src/ports/Wal.ts"
import { walSuite } from "../../src/testing/Wal.suite.ts"
import { FaultyDisk } from "../host/faultyDisk.ts"

const folder = mkdtempSync(join(tmpdir(), "svc-wal-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

let files = 0
const fresh = (): string => join(folder, `${files++}`, "wal.log")

walSuite("memory", () => Layer.fresh(Wal.layerMemory("log-of-memory")))
walSuite("file", () => layerFile(fresh()))
walSuite("files of 1 KB", () => layerFile(fresh(), { segmentBytes: 1_024 }))
walSuite("a disk made up", () => layerFile("/d/wal", { segmentBytes: 4_096, disk: new FaultyDisk().mount() }))

test("damage and a later version end a start with 3, anything else with 1", () => {
  const codes = (["damaged", "newer", "locked", "failed", "full"] as const).map(
    (reason) => startFault(new WalFailed({ reason, message: reason })).exitCode
  )
  expect(codes).toEqual([3, 3, 1, 1, 1])
})
