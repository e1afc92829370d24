/**
 * A lock that one process holds and that ends with it, however it ends: a socket that listens under a name in the file
 * system.
 *
 * A socket, because `node:fs` has no flock, and a file with a process id stays after a crash (ids are used again, in a
 * container it is 1 each time). A process that wants the lock connects: an answer means it is held, also by a suspended
 * process; a refusal means that its holder is gone. The holder can also check that the name is still its own, so that
 * two that took over at once find out.
 */
import { randomBytes } from "node:crypto"
import { statSync } from "node:fs"
import * as fs from "node:fs/promises"
import { connect, createServer, type Server } from "node:net"
import { basename, dirname } from "node:path"

export interface FileLock {
  readonly held: () => boolean
  readonly release: () => Promise<void>
}

/** Longest name of a socket, with room for systems that allow less than Linux. */
const maxAddressBytes = 90
const attempts = 5

/** The system's code of an error, such as `ENOENT`. */
export const codeOf = (error: unknown): unknown => (error instanceof Error && "code" in error ? error.code : undefined)

/** Whether a process listens; undefined if the name is gone. */
const answers = (address: string): Promise<boolean | undefined> =>
  new Promise((done, failed) => {
    const socket = connect(address)
    socket.on("connect", () => {
      socket.destroy()
      done(true)
    })
    socket.on("error", (error) => {
      const code = codeOf(error)
      if (code === "ENOENT") done(undefined)
      else if (code === "ECONNREFUSED" || code === "ENOTSOCK") done(false)
      else if (code === "EAGAIN") done(true)
      else failed(error)
    })
  })

/** Undefined if the name is taken. */
const listen = (address: string): Promise<Server | undefined> =>
  new Promise((done, failed) => {
    const server = createServer((socket) => socket.destroy())
    server.on("error", (error) => (codeOf(error) === "EADDRINUSE" ? done(undefined) : failed(error)))
    server.listen(address, () => {
      server.unref()
      done(server)
    })
  })

/** A path of any length as an address: a long one through an open handle of its folder, which Linux has as a path. */
const addressOf = async (path: string): Promise<{ readonly address: string; readonly close: () => Promise<void> }> => {
  if (Buffer.byteLength(path) <= maxAddressBytes) return { address: path, close: async () => {} }
  const folder = await fs.open(dirname(path), "r")
  return { address: `/proc/self/fd/${folder.fd}/${basename(path)}`, close: () => folder.close() }
}

const inodeOf = (path: string): number | undefined => statSync(path, { throwIfNoEntry: false })?.ino

/**
 * Takes the name from a holder that is gone; false if it is not. Renames first, because another process may have taken
 * over since the last question: the renamed file's owner is asked again, and the file gets its name back if that
 * process lives.
 */
const takeOver = async (path: string, address: string): Promise<boolean> => {
  const suffix = `.${randomBytes(3).toString("hex")}`
  try {
    await fs.rename(path, path + suffix)
  } catch (error) {
    if (codeOf(error) === "ENOENT") return true
    throw error
  }
  const alive = (await answers(address + suffix)) === true
  if (alive) {
    await fs.link(path + suffix, path).catch((error: unknown) => {
      if (codeOf(error) !== "EEXIST") throw error
    })
  }
  await fs.rm(path + suffix)
  return !alive
}

/** Takes the lock `path`; undefined if another process, or another part of this one, holds it. */
export const lockFile = async (path: string): Promise<FileLock | undefined> => {
  const { address, close } = await addressOf(path)
  for (let attempt = 0; attempt < attempts; attempt++) {
    const server = await listen(address)
    if (server === undefined) {
      if ((await answers(address)) === true || !(await takeOver(path, address))) break
      continue
    }
    const inode = inodeOf(path)
    const held = (): boolean => inode !== undefined && inodeOf(path) === inode
    const release = async (): Promise<void> => {
      // Closing removes the name. A name that another process has taken is left alone: our socket then has no name and
      // ends with the process.
      if (held()) await new Promise<void>((done) => server.close(() => done()))
      await close()
    }
    return { held, release }
  }
  await close()
  return undefined
}
