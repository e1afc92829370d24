/**
 * The embedded database's engine, spoken to in bytes: one call in, one answer out.
 *
 * Why the native file and not its package: the package shows only an SDK engine that encodes and decodes everything,
 * and a server must pass bytes on as they are. Which file fits this machine is found by trying, as the package does.
 */
import { readdirSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { root } from "../../rules/source.ts"
import * as Frames from "./frames.ts"

interface Native {
  readonly execute: (call: Uint8Array) => Promise<Uint8Array>
  readonly notifications: () => Promise<{ readonly recv: () => Promise<Uint8Array | null> }>
  readonly free: () => void
}

interface Binding {
  readonly SurrealNodeEngine: { readonly connect: (path: string, options: object) => Promise<Native> }
}

const load = (): Binding => {
  const folder = join(root, "node_modules/@surrealdb/node/dist")
  const require = createRequire(import.meta.url)
  const failures: Array<string> = []
  for (const name of readdirSync(folder).filter(
    (file) => file.startsWith(`surrealdb-node.${process.platform}-${process.arch}`) && file.endsWith(".node")
  )) {
    try {
      return require(join(folder, name)) as Binding
    } catch (error) {
      failures.push(`${name}: ${String(error)}`)
    }
  }
  throw new Error(`no engine for ${process.platform}-${process.arch}: ${failures.join("; ")}`)
}

/** What the engine said: the bytes of its result, or of its error. */
export interface Reply {
  readonly failed: boolean
  readonly bytes: Uint8Array
}

export class NativeEngine {
  readonly #native: Native
  #open = true
  /** Calls not answered yet. To free the engine under one of them ends the whole process. */
  readonly #pending = new Set<Promise<unknown>>()

  private constructor(native: Native) {
    this.#native = native
  }

  /** `path` as the database writes it: `mem://`, `surrealkv://folder`. */
  static async open(path: string, options: object): Promise<NativeEngine> {
    return new NativeEngine(await load().SurrealNodeEngine.connect(path, options))
  }

  async call(
    method: string,
    params: Uint8Array | undefined,
    session: string | undefined,
    txn: Uint8Array | undefined
  ): Promise<Reply> {
    if (!this.#open) throw new Error("the engine is closed")
    const answering = this.#native.execute(
      Frames.join([
        ["id", Frames.fromText("1")],
        ["method", Frames.fromText(method)],
        ["params", params ?? Uint8Array.from([0x80])],
        ["session", session === undefined ? Frames.none : Frames.fromUuid(session)],
        ["txn", txn ?? Frames.none]
      ])
    )
    this.#pending.add(answering)
    const bytes = await answering.finally(() => this.#pending.delete(answering))
    const map = (bytes[0] ?? 0) === 0xa1 ? Frames.entries(bytes) : undefined
    const error = map?.get("error")
    return error === undefined ? { failed: false, bytes } : { failed: true, bytes: error }
  }

  /** Hands every notification to `take` until the engine is closed. */
  async listen(take: (notification: Uint8Array) => void): Promise<void> {
    const receiver = await this.#native.notifications()
    for (;;) {
      const notification = await receiver.recv()
      if (notification === null || !this.#open) return
      take(notification)
    }
  }

  async close(): Promise<void> {
    if (!this.#open) return
    this.#open = false
    await Promise.allSettled(this.#pending)
    this.#native.free()
  }
}
