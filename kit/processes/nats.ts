/** The NATS that tests use, where one can be reached, and logs of their own in it; servers of their own to be killed. */
import { type ChildProcess, spawn, spawnSync } from "node:child_process"
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import { mkdirSync, writeFileSync } from "node:fs"
import { createConnection } from "node:net"
import { join } from "node:path"
import { Layer, Redacted } from "effect"
import * as LogUrl from "../../src/core/settings/logUrl.ts"
import type { Connection } from "../../src/drivers/nats/link.ts"
import { layerLog } from "../../src/host/wal/serverLog.ts"
import type { SharedLog } from "../../src/ports/SharedLog.ts"
import type { StartFault } from "../../src/ports/StartFault.ts"
import type { Wal, WalFailed } from "../../src/ports/Wal.ts"
import { freePort, removeFolder, temporaryFolder, until } from "./Door.ts"
import { layerWal, leadingOf, leaseMs as lease } from "./leading.ts"

/** Without a path where there is none: `describe.skipIf` shows it then. */
export const address = process.env.SVC_TEST_NATS ?? "nats://127.0.0.1:4222"

const [host = "", port = ""] = new URL(address).host.split(":")

const answers = (at: { readonly host: string; readonly port: number }): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = createConnection(at)
    const end = (is: boolean) => () => {
      socket.destroy()
      resolve(is)
    }
    socket.setTimeout(20_000, end(false)).once("connect", end(true)).once("error", end(false))
  })

interface Closable extends Connection {
  readonly close: () => Promise<void>
}

interface Client {
  readonly connect: (options: object) => Promise<Closable>
}

const client = await import("@nats-io/transport-node" as string).then(
  (found: unknown) => found as Client,
  () => undefined
)

export const isReachable = client !== undefined && (await answers({ host, port: Number(port || 4222) }))

/** Whether a test can start servers of its own. */
export const hasServer = client !== undefined && spawnSync("nats-server", ["--version"]).status === 0

const logs: Array<string> = []

export const freshLog = (at = address): string => {
  const log = `test-${randomUUID()}`
  logs.push(log)
  return `${at}/${log}`
}

export const nameOf = (url: string): string => LogUrl.parse(url)!.log

/** What a scheduler opens before it knows whether it leads. */
export const sharedOf = (url: string, leaseMs = lease, replicas = 1): Layer.Layer<SharedLog, StartFault> =>
  Layer.fresh(layerLog({ url: Redacted.make(url), leaseMs, durability: undefined, replicas }))

/** A term of a log: its WAL and pool once it leads. */
export const leading = (url: string, name: string, leaseMs = lease, copies = 1) =>
  leadingOf(sharedOf(url, leaseMs), { name, leaseMs, copies })

export const walOf = (url = freshLog(), name = "one"): Layer.Layer<Wal, WalFailed> => layerWal(sharedOf(url), name)

/** Commands beside the log. */
export const asking = async <A>(
  use: (ask: (command: string, body?: object) => Promise<{ readonly [field: string]: unknown }>) => Promise<A>,
  at = address
): Promise<A> => {
  const connection = await client!.connect({ servers: at.replace(/^nats:\/\//, "").split(",") })
  const ask = async (command: string, body?: object) => {
    const { data } = await connection.request(`$JS.API.${command}`, body === undefined ? "" : JSON.stringify(body), {
      timeout: 5_000
    })
    return JSON.parse(new TextDecoder().decode(data)) as { readonly [field: string]: unknown }
  }
  try {
    return await use(ask)
  } finally {
    await connection.close()
  }
}

/** A message of a stream, as another client sends it. */
export const publishing = async (subject: string, data: Uint8Array, at = address): Promise<unknown> => {
  const connection = await client!.connect({ servers: at.replace(/^nats:\/\//, "").split(",") })
  try {
    return await connection.request(subject, data, { timeout: 5_000 })
  } finally {
    await connection.close()
  }
}

export const forget = (): Promise<void> =>
  asking(async (ask) => {
    for (const log of logs)
      for (const stream of [`svc-log-${log}`, `svc-members-${log}`, `OBJ_svc-snapshots-${log}`])
        await ask(`STREAM.DELETE.${stream}`)
  })

/** Servers of one cluster, each with a folder and a port of its own, as processes that a test kills. */
export class Servers {
  private readonly folder = temporaryFolder()
  private readonly processes: Array<ChildProcess | undefined> = []
  readonly ports: ReadonlyArray<number>
  private readonly routes: ReadonlyArray<number>
  private readonly more: string

  private constructor(ports: ReadonlyArray<number>, routes: ReadonlyArray<number>, more: string) {
    this.ports = ports
    this.routes = routes
    this.more = more
  }

  /** `more`: further lines of each server's configuration. */
  static async start(count: number, more = ""): Promise<Servers> {
    const ports = await Promise.all(Array.from({ length: 2 * count }, freePort))
    const servers = new Servers(ports.slice(0, count), ports.slice(count), more)
    await Promise.all(servers.ports.map((_, i) => servers.run(i)))
    if (count > 1) await servers.settled()
    return servers
  }

  get url(): string {
    return `nats://${this.ports.map((each) => `127.0.0.1:${each}`).join(",")}`
  }

  async run(i: number): Promise<void> {
    const store = join(this.folder, String(i))
    mkdirSync(store, { recursive: true })
    const routes = this.routes.map((each) => `"nats://127.0.0.1:${each}"`).join(", ")
    const cluster =
      this.ports.length < 2 ? "" : `cluster { name: test, listen: "127.0.0.1:${this.routes[i]}", routes: [${routes}] }`
    const file = join(store, "server.conf")
    writeFileSync(
      file,
      `server_name: "n${i}"\nlisten: "127.0.0.1:${this.ports[i]}"\n${this.more.includes("jetstream") ? "" : `jetstream { store_dir: "${store}" }\n`}${cluster}\n${this.more}\n`
    )
    this.processes[i] = spawn("nats-server", ["-c", file, "-l", join(store, "server.log")], { stdio: "ignore" })
    await until("the server answers", () => answers({ host: "127.0.0.1", port: this.ports[i]! }))
  }

  /** All of them keep a stream together. */
  private settled(): Promise<unknown> {
    return until(
      "the servers are a cluster",
      () =>
        asking(async (ask) => {
          const name = `settled-${randomUUID()}`
          const made = await ask(`STREAM.CREATE.${name}`, {
            name,
            subjects: [name],
            num_replicas: this.ports.length,
            storage: "memory",
            retention: "limits",
            discard: "old"
          })
          if (made.error === undefined) await ask(`STREAM.DELETE.${name}`)
          return made.error === undefined
        }, this.url).catch(() => false),
      60_000
    )
  }

  signal(i: number, signal: NodeJS.Signals): void {
    this.processes[i]?.kill(signal)
  }

  async kill(i: number): Promise<void> {
    const process = this.processes[i]
    this.processes[i] = undefined
    if (process === undefined || process.exitCode !== null) return
    const ended = once(process, "exit")
    process.kill("SIGKILL")
    await ended
  }

  async close(): Promise<void> {
    await Promise.all(this.ports.map((_, i) => this.kill(i)))
    removeFolder(this.folder)
  }
}
