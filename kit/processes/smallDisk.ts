/**
 * A folder of a process with so much room and no more: a file system in memory that this process alone sees and that
 * ends with it.
 *
 * By the kernel's own means (`unshare`, `mount`, `nsenter`), which need root; where they are not to be had, tests are
 * skipped and say so.
 */
import { spawnSync } from "node:child_process"
import { removeFolder, temporaryFolder } from "./Door.ts"

/** What stands before a command that finds so much room in the folder that `variable` of its environment names. */
export const withRoom = (variable: string, kib: number): ReadonlyArray<string> => {
  const folder = `"$${variable}"`
  const script = `mkdir -p ${folder} && mount -t tmpfs -o size=${kib}k,mode=700 tmpfs ${folder} && exec "$@"`
  return ["unshare", "--mount", "--propagation", "private", "sh", "-c", script, "sh"]
}

/** Gives a running process so much room there. */
export const makeRoom = (pid: number, folder: string, kib: number): void => {
  const args = ["--mount", "--target", String(pid), "mount", "-o", `remount,size=${kib}k`, folder]
  const { status, stderr } = spawnSync("nsenter", args, { encoding: "utf8" })
  if (status !== 0) throw new Error(`no more room in ${folder}: ${stderr}`)
}

/** A folder as a running process sees it. */
export const seenBy = (pid: number, folder: string): string => `/proc/${pid}/root${folder}`

const tried = (): string | undefined => {
  if (process.getuid?.() !== 0) return "only root can make a small file system"
  const folder = temporaryFolder()
  try {
    const [command = "", ...args] = [...withRoom("FOLDER", 64), "true"]
    const { error, status, stderr } = spawnSync(command, args, {
      encoding: "utf8",
      env: { ...process.env, FOLDER: folder }
    })
    return status === 0 ? undefined : `no namespaces here: ${error?.message ?? stderr.trim()}`
  } finally {
    removeFolder(folder)
  }
}

/** Why there can be no small disk here. */
export const missing: string | undefined = tried()

if (missing !== undefined) console.warn(`tests of full disks are skipped: ${missing}`)
