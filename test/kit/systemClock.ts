/**
 * The time of day as one process reads it, moved by a test: libfaketime answers what any thread and any library in it
 * asks the C library. Time that goes by, which timers count, is left alone.
 *
 * Debian has it as `libfaketime`; where it is not to be had, tests are skipped and say so.
 */
import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { removeFolder, temporaryFolder } from "./Door.ts"

const folders = (): ReadonlyArray<string> => {
  const all = "/usr/lib"
  const ofMachines = existsSync(all) ? readdirSync(all).filter((name) => name.includes("-linux-")) : []
  return [...ofMachines.map((name) => join(all, name)), all, "/usr/local/lib"]
}

const library = folders()
  .map((folder) => join(folder, "faketime/libfaketimeMT.so.1"))
  .find((file) => existsSync(file))

/** Why there is none; undefined: there is one. */
export const lacking = library === undefined ? "no libfaketime" : undefined

export class SystemClock {
  private readonly folder = temporaryFolder()
  private readonly file = join(this.folder, "time")
  /** Environment of the process whose clock it is; a change of the clock is seen there within a second. */
  readonly env: { readonly [name: string]: string } = {
    LD_PRELOAD: library ?? "",
    FAKETIME_TIMESTAMP_FILE: this.file,
    FAKETIME_CACHE_DURATION: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1"
  }

  constructor() {
    this.set(0)
  }

  /**
   * `aheadSecs`: seconds ahead of the machine's clock, negative for behind. `rate`: seconds that it counts for each
   * second since the process began.
   */
  set(aheadSecs: number, rate = 1): void {
    // Never half a file: it is read at any moment.
    writeFileSync(`${this.file}.new`, `${aheadSecs < 0 ? "" : "+"}${aheadSecs} x${rate}\n`)
    renameSync(`${this.file}.new`, this.file)
  }

  close(): void {
    removeFolder(this.folder)
  }
}
