/**
 * What the WAL needs of a disk, and the disk of this machine through `node:fs`, which Node and Deno both have.
 *
 * A seam, because what matters about a log is what it does when a disk is full, fails or loses power, and no real disk
 * does that on request: tests put one here that does.
 */

import { renameSync, writeSync } from "node:fs"
import * as fs from "node:fs/promises"
import { type FileLock, lockFile } from "../process/fileLock.ts"

export interface WalHandle {
  /** At most `length` bytes from `at` on, fewer only at the end of the file. */
  readonly read: (at: number, length: number) => Promise<Uint8Array>
  /** All of `bytes` at `at`; when it fails, some of them may be there. */
  readonly write: (bytes: Uint8Array, at: number) => Promise<void>
  /**
   * fdatasync: written bytes are on the disk when it is done. After it failed, nothing about those bytes is
   * known.
   */
  readonly sync: () => Promise<void>
  readonly truncate: (length: number) => Promise<void>
  readonly size: () => Promise<number>
  readonly close: () => Promise<void>
}

export interface WalDisk {
  readonly makeFolder: (path: string) => Promise<void>
  /** Names in a folder. */
  readonly list: (folder: string) => Promise<ReadonlyArray<string>>
  /** `create` makes the file or empties it. */
  readonly open: (path: string, how: "read" | "write" | "create") => Promise<WalHandle>
  /** At once, so that no reader opens the old name for the new file. */
  readonly rename: (from: string, to: string) => void
  readonly remove: (path: string) => Promise<void>
  /** Names made, changed and removed in a folder are on the disk when it is done. */
  readonly syncFolder: (folder: string) => Promise<void>
  /** Bytes that may still be written below a folder; absent where it is unknown. */
  readonly free?: (folder: string) => Promise<number>
  /** undefined when another process has it. */
  readonly lock: (path: string) => Promise<FileLock | undefined>
}

/**
 * Up to this length a write is a copy into the machine's memory, done at once: a thread for it takes longer, and
 * every caller whose event is in it waits for that.
 */
const inPlace = 256 * 1024

const handleOf = (file: fs.FileHandle): WalHandle => ({
  read: async (at, length) => {
    const bytes = new Uint8Array(length)
    let filled = 0
    while (filled < length) {
      const { bytesRead } = await file.read(bytes, filled, length - filled, at + filled)
      if (bytesRead === 0) break
      filled += bytesRead
    }
    return bytes.subarray(0, filled)
  },
  write: async (bytes, at) => {
    const small = bytes.length <= inPlace
    for (let done = 0; done < bytes.length; ) {
      done += small
        ? writeSync(file.fd, bytes, done, bytes.length - done, at + done)
        : (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten
    }
  },
  sync: () => file.datasync(),
  truncate: (length) => file.truncate(length),
  size: async () => (await file.stat()).size,
  close: () => file.close()
})

const flags = { read: "r", write: "r+", create: "w+" } as const

export const nodeDisk: WalDisk = {
  makeFolder: async (path) => void (await fs.mkdir(path, { recursive: true })),
  list: (folder) => fs.readdir(folder),
  open: async (path, how) => handleOf(await fs.open(path, flags[how])),
  rename: renameSync,
  remove: (path) => fs.rm(path),
  syncFolder: async (folder) => {
    const handle = await fs.open(folder, "r")
    try {
      await handle.sync()
    } finally {
      await handle.close()
    }
  },
  free: async (folder) => {
    const { bavail, bsize } = await fs.statfs(folder)
    return bavail * bsize
  },
  lock: lockFile
}
