/**
 * A PostgreSQL of a test's own, which it may kill: all of its processes at once, as a machine does that loses power but
 * for what the kernel has in hand.
 *
 * It refuses to run as root, so a test that is root runs it as the user `postgres`.
 */
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { chownSync, existsSync, mkdtempSync, readdirSync, readFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePort, removeFolder, until } from "./Door.ts"

const folders = ["/usr/lib/postgresql", "/usr/local/pgsql", "/opt/homebrew/opt"]

const binOf = (): string | undefined =>
  folders
    .flatMap((folder) => (existsSync(folder) ? readdirSync(folder).map((name) => join(folder, name, "bin")) : []))
    .concat((process.env.PATH ?? "").split(":"))
    .find((folder) => existsSync(join(folder, "initdb")) && existsSync(join(folder, "postgres")))

const idOf = (flag: "-u" | "-g"): number | undefined => {
  try {
    return Number(execFileSync("id", [flag, "postgres"], { stdio: ["ignore", "pipe", "ignore"] }))
  } catch {
    return undefined
  }
}

const bin = binOf()
const isRoot = process.getuid?.() === 0
const as = isRoot ? { uid: idOf("-u"), gid: idOf("-g") } : { uid: undefined, gid: undefined }

/** Why there is none; undefined: there is one. */
export const lacking =
  bin === undefined
    ? "no initdb and postgres"
    : isRoot && as.uid === undefined
      ? "no user postgres, and PostgreSQL does not run as root"
      : undefined

const user: { readonly uid?: number; readonly gid?: number } =
  as.uid === undefined ? {} : { uid: as.uid, gid: as.gid ?? as.uid }

/** Processes that this one has started, and theirs. */
const descendants = (pid: number): ReadonlyArray<number> => {
  const parents = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const stat = readFileSync(`/proc/${name}/stat`, "utf8")
        return [[Number(name), Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1])] as const]
      } catch {
        return []
      }
    })
  const below = (of: number): ReadonlyArray<number> =>
    parents.filter(([, parent]) => parent === of).flatMap(([child]) => [child, ...below(child)])
  return below(pid)
}

export class OwnPostgres {
  private readonly folder: string
  private readonly host: string
  private readonly port: number
  private child: ChildProcess | undefined
  private out = ""

  private constructor(folder: string, host: string, port: number) {
    this.folder = folder
    this.host = host
    this.port = port
  }

  /** `host`: an address of this machine to listen on. */
  static async start(host = "127.0.0.1"): Promise<OwnPostgres> {
    const folder = mkdtempSync(join(tmpdir(), "live-sidecar-postgres-"))
    if (user.uid !== undefined) chownSync(folder, user.uid, user.gid ?? user.uid)
    execFileSync(join(bin!, "initdb"), ["-D", join(folder, "data"), "-U", "postgres", "-A", "trust", "--no-sync"], {
      ...user,
      cwd: folder,
      stdio: "ignore"
    })
    const server = new OwnPostgres(folder, host, await freePort())
    await server.run()
    return server
  }

  /** Of a log in it. */
  get url(): string {
    return `postgres://postgres@${this.host}:${this.port}/postgres`
  }

  /** Starts it again, and waits until it answers. */
  async run(): Promise<void> {
    const options = [
      `listen_addresses=${this.host}`,
      `port=${this.port}`,
      `unix_socket_directories=${this.folder}`,
      "max_connections=40"
    ]
    const rules = join(this.folder, "data", "pg_hba.conf")
    if (!readFileSync(rules, "utf8").includes("10.0.0.0/8"))
      execFileSync("sh", ["-c", `echo 'host all all 10.0.0.0/8 trust' >> "$0"`, rules], user)
    const child = spawn(
      join(bin!, "postgres"),
      ["-D", join(this.folder, "data"), ...options.flatMap((option) => ["-c", option])],
      { ...user, cwd: this.folder, stdio: ["ignore", "pipe", "pipe"] }
    )
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => void (this.out += text))
    this.child = child
    const begun = this.out.length
    await until("it answers", () => {
      if (child.exitCode !== null) throw new Error(`PostgreSQL has ended:\n${this.out.slice(-2000)}`)
      return this.out.slice(begun).includes("ready to accept connections")
    })
  }

  /** SIGKILL to every process of it, the first one first, so that it starts none again. */
  async kill(): Promise<void> {
    const { child } = this
    if (child?.pid === undefined) return
    const all = [child.pid, ...descendants(child.pid)]
    const exited = new Promise((done) => child.once("exit", done))
    for (const pid of all) {
      try {
        process.kill(pid, "SIGKILL")
      } catch {
        // It has ended by itself.
      }
    }
    await exited
    this.child = undefined
  }

  async close(): Promise<void> {
    await this.kill()
    removeFolder(this.folder)
  }
}
