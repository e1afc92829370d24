/**
 * A process as a hardened container runs it, without a container engine: process 1 of its own, an unprivileged user
 * without capabilities, every file system read-only but one folder.
 *
 * By the kernel's own means (`unshare`, bind mounts, `setpriv`), which need root; where they are not to be had, tests
 * are skipped and say so.
 */
import { spawnSync } from "node:child_process"
import { chmodSync, chownSync, existsSync, mkdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { type Door, removeFolder, temporaryFolder } from "./Door.ts"

/** The image's user. */
const user = 1000

const script = [
  "mount -o remount,ro,bind /",
  `mount --bind "$1" "$1"`,
  `mount -o remount,rw,bind "$1"`,
  "shift",
  `exec setpriv --reuid ${user} --regid ${user} --clear-groups --no-new-privs --inh-caps=-all --bounding-set=-all "$@"`
].join(" && ")

/** A folder that belongs to the image's user. */
export const dataFolder = (inside: string): string => {
  chmodSync(inside, 0o755)
  const folder = join(inside, "data")
  mkdirSync(folder, { mode: 0o750 })
  chownSync(folder, user, user)
  return folder
}

/** What stands before a command that may write to `folder` alone. */
export const confined = (folder: string): ReadonlyArray<string> => [
  "unshare",
  "--mount",
  "--propagation",
  "private",
  "--pid",
  "--fork",
  "--mount-proc",
  "sh",
  "-c",
  script,
  "sh",
  folder
]

const tried = (): string | undefined => {
  if (process.getuid?.() !== 0) return "only root can make a read-only tree"
  const folder = temporaryFolder()
  try {
    const [command = "", ...args] = [...confined(dataFolder(folder)), "true"]
    const { error, status, stderr } = spawnSync(command, args, { encoding: "utf8" })
    return status === 0 ? undefined : `no namespaces here: ${error?.message ?? stderr.trim()}`
  } finally {
    removeFolder(folder)
  }
}

/** Why nothing can be confined here. */
export const missing: string | undefined = tried()

if (missing !== undefined) console.warn(`tests of confined processes are skipped: ${missing}`)

/** Process 1 inside, as it is seen from outside; undefined when it has ended. */
export const inner = (pid: number): number | undefined => {
  const children = `/proc/${pid}/task/${pid}/children`
  return existsSync(children) ? Number(readFileSync(children, "utf8").trim().split(" ")[0]) || undefined : undefined
}

/** For a test that failed half-way: what is inside does not end with what started it. */
export const end = async (door: Door): Promise<void> => {
  const pid = door.exit === undefined ? inner(door.pid) : undefined
  if (pid !== undefined) process.kill(pid, "SIGKILL")
  await door.close()
}
