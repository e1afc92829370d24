/**
 * A disk in memory that fills up, fails and loses power on request, for the WAL.
 *
 * It knows two states of a file, as a system does: what was written, and what is on the disk. A flush makes one the
 * other; when power goes, the test says which bytes of what was not flushed had arrived. It counts what it is asked to
 * do.
 */
import type { WalDisk, WalHandle } from "../../src/host/wal/walDisk.ts"

interface Inode {
  written: Uint8Array
  flushed: Uint8Array
}

const failed = (code: string): Error => Object.assign(new Error(`${code}: made up`), { code })

export type Operation = "open" | "write" | "sync" | "truncate" | "rename" | "remove" | "syncFolder"

export class FaultyDisk {
  /** Bytes that fit on the disk. */
  capacity = Number.MAX_SAFE_INTEGER
  readonly counts = new Map<Operation, number>()
  private readonly files = new Map<string, Inode>()
  private readonly flushedNames: Map<string, Inode>
  private readonly locks = new Set<string>()
  private readonly failing = new Map<Operation, string>()

  constructor(files: ReadonlyMap<string, Uint8Array> = new Map()) {
    for (const [path, bytes] of files) this.files.set(path, { written: bytes, flushed: bytes })
    this.flushedNames = new Map(this.files)
  }

  /** From now on an operation fails, until {@link mend}. */
  fail(operation: Operation, code: string): void {
    this.failing.set(operation, code)
  }

  mend(): void {
    this.failing.clear()
    this.capacity = Number.MAX_SAFE_INTEGER
  }

  get used(): number {
    return [...this.files.values()].reduce((sum, file) => sum + file.written.length, 0)
  }

  /** What is in a file as a reader sees it. */
  bytes(path: string): Uint8Array {
    return this.inode(path).written
  }

  names(): ReadonlyArray<string> {
    return [...this.files.keys()].sort()
  }

  /**
   * The disk after the power was cut: `arrived` says for a file that was not flushed what is there of it. Names not
   * flushed are lost, unless they happened to arrive.
   */
  powerCut(
    arrived: (written: Uint8Array, flushed: Uint8Array) => Uint8Array,
    names: "flushed" | "arrived" = "flushed"
  ): FaultyDisk {
    return new FaultyDisk(
      new Map(
        [...(names === "flushed" ? this.flushedNames : this.files)].map(([path, file]) => [
          path,
          file.written === file.flushed ? file.flushed : arrived(file.written, file.flushed)
        ])
      )
    )
  }

  /** The disk after the process was killed: everything written can be read, and what was not flushed still is not. */
  processKilled(): FaultyDisk {
    const disk = new FaultyDisk()
    for (const [path, file] of this.files) disk.files.set(path, { ...file })
    for (const [path, file] of this.flushedNames)
      disk.flushedNames.set(
        path,
        [...this.files].find(([, other]) => other === file)?.[0] === path ? disk.files.get(path)! : { ...file }
      )
    return disk
  }

  private inode(path: string): Inode {
    const file = this.files.get(path)
    if (file === undefined) throw failed("ENOENT")
    return file
  }

  private enter(operation: Operation): void {
    this.counts.set(operation, (this.counts.get(operation) ?? 0) + 1)
    const code = this.failing.get(operation)
    if (code !== undefined) throw failed(code)
  }

  private resize(file: Inode, length: number): void {
    const bytes = new Uint8Array(length)
    bytes.set(file.written.subarray(0, length))
    file.written = bytes
  }

  /** As much as there is room for, then an error, as a disk does it. */
  private write(file: Inode, bytes: Uint8Array, at: number): void {
    const room = this.capacity - this.used + file.written.length - at
    const fitting = bytes.subarray(0, Math.max(0, Math.min(bytes.length, room)))
    this.resize(file, Math.max(file.written.length, at + fitting.length))
    file.written.set(fitting, at)
    this.enter("write")
    if (fitting.length < bytes.length) throw failed("ENOSPC")
  }

  private handle(file: Inode): WalHandle {
    return {
      read: async (at, length) => file.written.slice(at, at + length),
      write: async (bytes, at) => this.write(file, bytes, at),
      sync: async () => {
        // What is flushed is what was written when the flush began; a turn passes until it is done.
        const { written } = file
        await new Promise<void>((done) => setImmediate(done))
        this.enter("sync")
        file.flushed = written
      },
      truncate: async (length) => {
        this.enter("truncate")
        this.resize(file, length)
      },
      size: async () => file.written.length,
      close: async () => {}
    }
  }

  mount(): WalDisk {
    return {
      makeFolder: async () => {},
      list: async (folder) =>
        this.names()
          .filter((path) => path.startsWith(`${folder}/`))
          .map((path) => path.slice(folder.length + 1)),
      open: async (path, how) => {
        this.enter("open")
        if (how === "create") this.files.set(path, { written: new Uint8Array(0), flushed: new Uint8Array(0) })
        return this.handle(this.inode(path))
      },
      rename: (from, to) => {
        this.enter("rename")
        const file = this.inode(from)
        this.files.delete(from)
        this.files.set(to, file)
      },
      remove: async (path) => {
        this.enter("remove")
        this.inode(path)
        this.files.delete(path)
      },
      syncFolder: async () => {
        this.enter("syncFolder")
        this.flushedNames.clear()
        for (const [path, file] of this.files) this.flushedNames.set(path, file)
      },
      lock: async (path) => {
        if (this.locks.has(path)) return undefined
        this.locks.add(path)
        return { held: () => this.locks.has(path), release: async () => void this.locks.delete(path) }
      }
    }
  }
}
