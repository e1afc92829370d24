/**
 * A real server process for a test: started as its users start it, watched, stopped, its folder cleaned up.
 *
 * Why a process and not a layer: what the contract promises is what comes out of `node dist/ssp.js`, start-up faults,
 * signals and `kill -9` included. The environment of the child holds nothing of ours but what the test gives it.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync, mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { freePorts } from "../../scripts/start/ports.ts"
import { request } from "../checks/http.ts"
import { root } from "../rules/source.ts"

export const secret = "s3cret-for-tests"

export interface DoorOptions {
  /** Command and arguments before nothing else; default `node dist/ssp.js`. */
  readonly command?: ReadonlyArray<string>
  /**
   * Added to the environment; undefined takes a default away, `{port}` in a value is the port the door will be asked
   * on.
   */
  readonly env?: { readonly [name: string]: string | undefined }
  /** Data folder to keep over restarts; by default a new one, removed with the door. */
  readonly dataDir?: string
  /** PEM text of who issued its certificate: it is asked over TLS. */
  readonly ca?: string
}

export interface Exit {
  readonly code: number | null
  readonly signal: NodeJS.Signals | null
}

const startBoundMs = 60_000

export const sleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, ms))

/** Waits until `check` answers something other than undefined and false; the bound is for broken code only. */
export const until = async <A>(
  what: string,
  check: () => Promise<A | undefined | false> | A | undefined | false,
  boundMs = 60_000
): Promise<A> => {
  const begun = performance.now()
  for (;;) {
    const found = await check()
    if (found !== undefined && found !== false) return found
    const waited = performance.now() - begun
    if (waited > boundMs) throw new Error(`waited ${boundMs} ms in vain: ${what}`)
    await sleep(Math.min(10 + waited / 10, 200))
  }
}

/**
 * Ports below those that the kernel gives to connections, a part of them for each worker: a process binds its port a
 * moment after it was found free, and another one that took it meanwhile would answer in its place.
 */
const ports = { first: 12_000, each: 2500, parts: 8 }
const part = ports.first + ports.each * (Number(process.env["VITEST_POOL_ID"] ?? 0) % ports.parts)

export const freePort = freePorts(part, ports.each, (process.pid * 101) % ports.each)

export const temporaryFolder = (): string => mkdtempSync(join(tmpdir(), "live-sidecar-"))

/** The environment of a scheduler of its own, with everything it keeps in one folder. */
export const schedulerEnv = (folder: string, port: number | "{port}" = "{port}"): NonNullable<DoorOptions["env"]> => ({
  LISTEN_ADDR: undefined,
  STORE_ADDR: undefined,
  SVC_DATA_DIR: undefined,
  SVC_SCHEDULER_INGEST_HOST: "127.0.0.1",
  SVC_SCHEDULER_INGEST_PORT: String(port),
  SVC_SCHEDULER_REPLICA_DB_PATH: join(folder, "replica"),
  SVC_SCHEDULER_WAL_PATH: join(folder, "wal.log")
})

export class Door {
  readonly port: number
  readonly url: string
  readonly dataDir: string
  readonly #child: ChildProcess
  readonly #ownsFolder: boolean
  readonly #ca: string | undefined
  #out = ""
  #exit: Exit | undefined
  readonly exited: Promise<Exit>

  private constructor(child: ChildProcess, port: number, dataDir: string, ownsFolder: boolean, ca: string | undefined) {
    this.#child = child
    this.port = port
    this.#ca = ca
    this.url = `http${ca === undefined ? "" : "s"}://127.0.0.1:${port}`
    this.dataDir = dataDir
    this.#ownsFolder = ownsFolder
    const collect = (chunk: Buffer): void => {
      this.#out += chunk.toString("utf8")
    }
    child.stdout?.on("data", collect)
    child.stderr?.on("data", collect)
    this.exited = new Promise((done) => {
      child.on("error", (error) => {
        this.#out += String(error)
        this.#exit ??= { code: -1, signal: null }
        done(this.#exit)
      })
      child.on("close", (code, signal) => {
        this.#exit ??= { code, signal }
        done(this.#exit)
      })
    })
  }

  /** Starts a process without waiting for it to serve: for start faults and `--help`. */
  static async spawn(options: DoorOptions = {}, ...args: ReadonlyArray<string>): Promise<Door> {
    const command = options.command ?? [process.execPath, "dist/ssp.js"]
    const port = await freePort()
    const dataDir = options.dataDir ?? temporaryFolder()
    const env: Record<string, string> = {}
    const settings: Record<string, string | undefined> = {
      PATH: process.env["PATH"],
      HOME: dataDir,
      LANG: "C.UTF-8",
      LISTEN_ADDR: `127.0.0.1:${port}`,
      SVC_AUTH_SECRET: secret,
      SVC_DATA_DIR: dataDir,
      STORE_ADDR: "memory://",
      // Whole suites run with either way that an SSP may get its changes by.
      SVC_CLUSTER_FEED: process.env["SVC_CLUSTER_FEED"],
      ...options.env
    }
    for (const [name, value] of Object.entries(settings))
      if (value !== undefined) env[name] = value.replace("{port}", String(port))
    const child = spawn(command[0] ?? "", [...command.slice(1), ...args], {
      cwd: root,
      env,
      stdio: ["ignore", "pipe", "pipe"]
    })
    return new Door(child, port, dataDir, options.dataDir === undefined, options.ca)
  }

  /**
   * Starts a process and waits until it answers: `/health` 200, or `/version` where a scheduler decides when it is
   * ready.
   */
  static async start(options: DoorOptions = {}, ...args: ReadonlyArray<string>): Promise<Door> {
    for (let attempt = 1; ; attempt++) {
      const door = await Door.spawn(options, ...args)
      const serving = await door.#serving(options.env?.["SCHEDULER_URL"] === undefined ? "/health" : "/version")
      if (serving) return door
      const logs = door.logs
      await door.close()
      if (attempt < 3 && /EADDRINUSE|in use/i.test(logs)) continue
      throw new Error(`the process does not serve:\n${logs.slice(-4000)}`)
    }
  }

  async #serving(path: string): Promise<boolean> {
    const deadline = performance.now() + startBoundMs
    while (this.#exit === undefined && performance.now() < deadline) {
      const answer = await request(this.url, {
        path,
        keepAlive: false,
        tls: this.#ca === undefined ? undefined : { ca: this.#ca }
      }).catch(() => undefined)
      if (answer?.status === 200) return true
      await sleep(25)
    }
    return false
  }

  get pid(): number {
    return this.#child.pid ?? -1
  }

  /** Everything the process has printed so far, both streams. */
  get logs(): string {
    return this.#out
  }

  get exit(): Exit | undefined {
    return this.#exit
  }

  signal(name: NodeJS.Signals): void {
    if (this.#exit === undefined) this.#child.kill(name)
  }

  async stop(): Promise<Exit> {
    this.signal("SIGTERM")
    return this.exited
  }

  async kill(): Promise<Exit> {
    this.signal("SIGKILL")
    return this.exited
  }

  /** Ends the process if it still runs and removes the folder if it is ours. */
  async close(): Promise<void> {
    await this.kill()
    if (this.#ownsFolder) removeFolder(this.dataDir)
  }
}

export const removeFolder = (path: string): void => {
  // A database that was closed may write a last file while its folder goes.
  if (existsSync(path)) rmSync(path, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 })
}
