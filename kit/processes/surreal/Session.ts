/**
 * Sessions of the database server in the tests: who has signed in, until when, and what a session may not do before.
 *
 * Why here: the embedded engine asks nobody for a password and never ends a session; a real server does both, and our
 * client must cope with both. Refusals are worded and numbered as the real server's.
 */
import { randomUUID } from "node:crypto"
import { CborCodec } from "surrealdb"
import * as Frames from "./frames.ts"
import type { NativeEngine, Reply } from "./NativeEngine.ts"

const codec = new CborCodec({})

/** What anybody may call. */
const open = new Set([
  "signin",
  "signup",
  "authenticate",
  "use",
  "let",
  "set",
  "unset",
  "ping",
  "health",
  "version",
  "info",
  "invalidate",
  "reset"
])
const signsIn = new Set(["signin", "signup", "authenticate"])

export const refusal = (message: string, reason: string): Reply => ({
  failed: true,
  bytes: Frames.fromObject({
    code: -32002,
    kind: "NotAllowed",
    message,
    details: { kind: "Auth", details: { kind: reason } }
  })
})

const messageOf = ({ bytes }: Reply): Error =>
  new Error(String((codec.decode(bytes) as { readonly message: unknown }).message))

export class Session {
  readonly id: string
  readonly #engine: NativeEngine
  readonly #version: string | undefined
  #signedIn = false
  #expiresAtMs = Infinity
  #isDetached = false

  private constructor(engine: NativeEngine, id: string, version: string | undefined) {
    this.#engine = engine
    this.#version = version
    this.id = id
  }

  /** `version`: what it says instead of the engine's own. */
  static async attach(engine: NativeEngine, version?: string): Promise<Session> {
    const session = new Session(engine, randomUUID().replaceAll("-", ""), version)
    await engine.call("attach", undefined, session.id, undefined)
    return session
  }

  async call(method: string, params: Uint8Array | undefined, txn: Uint8Array | undefined): Promise<Reply> {
    if (method === "version" && this.#version !== undefined)
      return { failed: false, bytes: Frames.fromText(`surrealdb-${this.#version}`) }
    if (!open.has(method)) {
      if (!this.#signedIn)
        return refusal("Anonymous access not allowed: Not enough permissions to perform this action", "NotAllowed")
      if (Date.now() >= this.#expiresAtMs) return refusal("The session has expired", "SessionExpired")
    }
    const reply = await this.#engine.call(method, params, this.id, txn)
    if (method === "invalidate" || method === "reset") this.#signedIn = false
    if (signsIn.has(method) && !reply.failed) await this.#welcome()
    return reply
  }

  /** As {@link call}, with values that are encoded and decoded here; throws what fails. */
  async ask<A>(method: string, ...params: ReadonlyArray<unknown>): Promise<A> {
    const reply = await this.call(method, codec.encode(params), undefined)
    if (reply.failed) throw messageOf(reply)
    return codec.decode(reply.bytes) as A
  }

  /** Ends its live queries too. */
  async detach(): Promise<void> {
    this.#isDetached = true
    await this.#engine.call("detach", undefined, this.id, undefined)
  }

  /** From now on the session is as if its time had passed. */
  expire(): void {
    if (this.#signedIn) this.#expiresAtMs = 0
  }

  async #welcome(): Promise<void> {
    this.#signedIn = true
    const reply = await this.#engine.call("query", codec.encode(["RETURN $session.exp", {}]), this.id, undefined)
    // A client that hangs up while it signs in takes its session with it.
    if (reply.failed && this.#isDetached) return
    if (reply.failed) throw messageOf(reply)
    const [answer] = codec.decode(reply.bytes) as ReadonlyArray<{ readonly result: unknown }>
    this.#expiresAtMs = typeof answer?.result === "number" ? answer.result * 1000 : Infinity
  }
}
