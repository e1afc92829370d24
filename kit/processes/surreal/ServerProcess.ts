/**
 * A database server in a process of its own, for tests that end it the hard way: SIGKILL, SIGSTOP, restart on its data.
 *
 * Why beside the in-process server: what survives a kill, and what a client sees of a machine that hangs, no code in
 * the same process can show. Tests that need neither take the in-process one, which starts ten times as fast.
 */
import { type ChildProcess, fork } from "node:child_process"
import { once } from "node:events"
import { root } from "../../rules/source.ts"
import { compiled } from "../compiled.ts"
import type { Order } from "./main.ts"
import type { ServerOptions } from "./RpcServer.ts"

export class ServerProcess {
  readonly options: ServerOptions
  readonly port: number
  readonly user: string
  readonly pass: string
  readonly #child: ChildProcess

  private constructor(child: ChildProcess, options: ServerOptions, port: number) {
    this.#child = child
    this.options = options
    this.port = port
    this.user = options.user ?? "root"
    this.pass = options.pass ?? "root"
  }

  static async start(options: ServerOptions = {}): Promise<ServerProcess> {
    const child = fork(await compiled("kit/processes/surreal/main.ts"), [JSON.stringify(options)], {
      cwd: root,
      execArgv: [],
      stdio: ["ignore", "pipe", "pipe", "ipc"]
    })
    let said = ""
    for (const stream of [child.stdout, child.stderr])
      stream?.on("data", (chunk: Buffer) => (said += chunk.toString("utf8")))
    const [first] = await Promise.race([
      once(child, "message") as Promise<ReadonlyArray<{ readonly port: number }>>,
      once(child, "exit").then(() => Promise.reject(new Error(`the database server ended: ${said.slice(-2000)}`)))
    ])
    if (first === undefined) throw new Error("the database server said nothing")
    return new ServerProcess(child, options, first.port)
  }

  get url(): string {
    return `ws://127.0.0.1:${this.port}`
  }

  get httpUrl(): string {
    return `http://127.0.0.1:${this.port}`
  }

  /** Stops the process as it stands: connections stay open, nothing is answered. */
  pause(): void {
    this.#child.kill("SIGSTOP")
  }

  resume(): void {
    this.#child.kill("SIGCONT")
  }

  slow(delayMs: number): Promise<void> {
    return this.#order({ slow: delayMs }).then(() => undefined)
  }

  expireSessions(): Promise<void> {
    return this.#order({ expire: true }).then(() => undefined)
  }

  cut(): Promise<void> {
    return this.#order({ cut: true }).then(() => undefined)
  }

  async kill(): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return
    const gone = once(this.#child, "exit")
    this.#child.kill("SIGKILL")
    await gone
  }

  /** The same server again, on the same data and port. */
  restart(): Promise<ServerProcess> {
    return ServerProcess.start({ ...this.options, port: this.port })
  }

  /** Requests answered so far. */
  async requests(): Promise<number> {
    return (await this.#order({ count: true })).requests
  }

  async #order(order: Order): Promise<{ readonly requests: number }> {
    const done = once(this.#child, "message") as Promise<[{ readonly requests: number }]>
    this.#child.send(order)
    return (await done)[0]
  }
}
