/**
 * `npm start` as a test sees it: what it printed, read back, and which of its processes still live.
 *
 * Its temporary files are kept below a folder of the test, so that whatever works there belongs to it, also after the
 * launcher is gone and nobody is anybody's child any more.
 */
import { readdirSync, readlinkSync } from "node:fs"
import { Door, removeFolder, temporaryFolder, until } from "./Door.ts"

export interface Greeting {
  readonly dashboard: string
  /** Address of the live application. */
  readonly board: string
  readonly secret: string
  /** Shell lines to try, as printed. */
  readonly commands: ReadonlyArray<string>
}

export class LocalCluster {
  readonly door: Door
  readonly folder: string

  private constructor(door: Door, folder: string) {
    this.door = door
    this.folder = folder
  }

  /**
   * The launcher itself, or `npm start` in a process group of its own, without the build before it, which `npm test`
   * has just made.
   */
  static async spawn(
    by: "npm" | "launcher",
    args: ReadonlyArray<string> = [],
    env: { readonly [name: string]: string | undefined } = {}
  ): Promise<LocalCluster> {
    const folder = temporaryFolder()
    const command =
      by === "npm"
        ? ["setsid", "npm", "start", "--ignore-scripts", "--"]
        : ["node_modules/.bin/vite-node", "scripts/start/main.ts", "--"]
    const door = await Door.spawn(
      {
        command,
        dataDir: folder,
        env: {
          TMPDIR: folder,
          SVC_SCHEDULER_INGEST_PORT: "0",
          SVC_AUTH_SECRET: undefined,
          SVC_DATA_DIR: undefined,
          STORE_ADDR: undefined,
          ...env
        }
      },
      ...args
    )
    return new LocalCluster(door, folder)
  }

  /** What it prints once everything is up. */
  async greeting(): Promise<Greeting> {
    const text = await until(
      "the greeting of npm start",
      () => {
        if (this.door.exit !== undefined) throw new Error(`it ended: ${this.door.logs}`)
        return /Ctrl-C stops everything/.test(this.door.logs) ? this.door.logs : undefined
      },
      120_000
    )
    const found = (what: string): string => new RegExp(`^  ${what} +(\\S+)`, "m").exec(text)?.[1] ?? ""
    return {
      dashboard: found("dashboard"),
      board: found("board"),
      secret: found("secret"),
      commands: [...text.matchAll(/^ {2}((?:curl|sleep|kill) .*)$/gm)].map(([, line]) => line!)
    }
  }

  /** Processes that work in its folder: the scheduler and the SSPs. */
  processes(): ReadonlyArray<number> {
    const workingIn = (pid: string): string => {
      try {
        return readlinkSync(`/proc/${pid}/cwd`)
      } catch {
        return ""
      }
    }
    return readdirSync("/proc")
      .filter((name) => /^\d+$/.test(name) && workingIn(name).startsWith(`${this.folder}/`))
      .map(Number)
  }

  async gone(): Promise<void> {
    await until("no process of it is left", () => this.processes().length === 0)
  }

  /** What a terminal does at Ctrl-C: a signal to every process of the group, of which npm passes one on besides. */
  ctrlC(): void {
    process.kill(-this.door.pid, "SIGINT")
  }

  /** For a test that failed half-way. */
  async close(): Promise<void> {
    this.door.signal("SIGTERM")
    await this.door.exited
    await this.gone()
    removeFolder(this.folder)
  }
}
