/**
 * The time of day as one process of ours reads it, moved by a test. Time that goes by, which timers count, is left alone.
 */
import { renameSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { root } from "../rules/source.ts"
import { removeFolder, temporaryFolder } from "./Door.ts"

export class SystemClock {
  private readonly folder = temporaryFolder()
  private readonly file = join(this.folder, "time")
  private text = ""
  /** Environment of the process whose clock it is. */
  readonly env: { readonly [name: string]: string } = {
    NODE_OPTIONS: `--import=${pathToFileURL(join(root, "kit/processes/setClock.mjs"))}`,
    SVC_TEST_CLOCK: this.file
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
    this.text = JSON.stringify({ aheadSecs, rate })
    writeFileSync(`${this.file}.new`, this.text)
    renameSync(`${this.file}.new`, this.file)
  }

  /** Whether a process with this output goes by the clock as it was set last. */
  isSeenIn(logs: string): boolean {
    return (
      logs.lastIndexOf("clock set: ") >= 0 &&
      logs.slice(logs.lastIndexOf("clock set: ")).startsWith(`clock set: ${this.text}\n`)
    )
  }

  close(): void {
    removeFolder(this.folder)
  }
}
