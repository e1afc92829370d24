/**
 * The disk operations of the WAL, and this machine's disk through `node:fs`, which Node and Deno both have.
 *
 * An interface, because a log matters when a disk is full, fails or loses power, and no real disk does that on request:
 * tests use a disk that does.
 */

import { renameSync, writeSync } from "node:fs"
import * as fs from "node:fs/promises"
import { type FileLock, lockFile } from "../process/fileLock.ts"

export interface WalHandle {
  /** At most `length` bytes from `at` on, fewer only at the end of the file. */
  readonly read: (at: number, length: number) => Promise<Uint8Array>
  /** Writes all of `bytes` at `at`; after a failure some of them may be written. */
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
  /** Synchronous, so that no reader opens the old name for the new file. */
  readonly rename: (from: string, to: string) => void
  readonly remove: (path: string) => Promise<void>
  /** Flushes names made, changed and removed in a folder. */
  readonly syncFolder: (folder: string) => Promise<void>
  /** Free bytes below a folder; absent if unknown. */
  readonly free?: (folder: string) => Promise<number>
  /** Undefined if another process has the lock. */
  readonly lock: (path: string) => Promise<FileLock | undefined>
}

/**
 * Longest synchronous write, which is a copy into the machine's memory. A thread for it takes longer, and every caller
 * whose event is in the write waits.
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
