/**
 * One signed-in connection to a SurrealDB: never repaired, always replaced.
 *
 * The SDK may not reconnect by itself: it would send requests in flight again, writes included, and restore sessions by
 * rules of its own. A broken link fails its requests in flight and is dropped; the next one signs in anew, which also
 * renews an expired session.
 */
import { Effect, Redacted } from "effect"
import { type Engines, Surreal, type SystemAuth } from "surrealdb"
import type { EmbeddedStore, ServerStore } from "../../core/settings/address.ts"
import type { Value } from "../../core/surql/values/value.ts"
import { definitionsOf } from "../../core/surreal/definitions.ts"
import { StartFault } from "../../ports/StartFault.ts"
import type { Bindings, SurrealError } from "../../ports/SurrealClient.ts"
import * as OptionalPackage from "../optionalPackage.ts"
import * as SurrealEngines from "./surrealEngines.ts"
import { failureOf, openFailureOf } from "./surrealFailures.ts"
import { type RawSocket, socketClass } from "./surrealSocket.ts"

export type AuthLevel = "root" | "namespace" | "database"

export interface Access {
  readonly namespace: string
  readonly database: string
  /** Undefined: the service does not sign in. */
  readonly user: string | undefined
  readonly pass: Redacted.Redacted<string> | undefined
  /** Undefined: tried in the order root, namespace, database. */
  readonly authLevel: AuthLevel | undefined
  /** If namespace or database does not exist: it is created, or a fault names the setting that has its name. */
  readonly absent: "create" | { readonly namespace: string; readonly database: string }
}

export interface Timeouts {
  readonly connectTimeoutMs: number
  readonly requestTimeoutMs: number
  /** Longest pause between two attempts to connect. */
  readonly maxPauseMs: number
}

const credentials = ({ database, namespace, pass, user }: Access, level: AuthLevel): SystemAuth | undefined => {
  if (user === undefined) return undefined
  const login = { username: user, password: pass === undefined ? "" : Redacted.value(pass) }
  return level === "root" ? login : level === "namespace" ? { ...login, namespace } : { ...login, namespace, database }
}

type Selected = "namespace" | "database"

/** A fault, because a misspelt name would otherwise give the service an empty database. */
const absentFault = ({ absent, database, namespace }: Access, what: Selected): StartFault => {
  const missing =
    what === "namespace" ? `no namespace ${namespace}` : `no database ${database} in the namespace ${namespace}`
  const correct = absent === "create" ? "" : `correct ${absent[what]}, `
  return new StartFault({
    exitCode: 2,
    message: `the database server has ${missing}: ${correct}define it there, or have --install-database-setup create it with --create`
  })
}

/** Checked at each connection, before signing in: a server of another version may not understand the rest. */
const ofVersion = (address: ServerStore, version: string): void => {
  if (/^(?:surrealdb-)?3\./.test(version)) return
  const found = version.replace(/^surrealdb-/, "").slice(0, 40)
  throw new StartFault({
    exitCode: 1,
    message: `the database at ${address.url} is SurrealDB ${found}; this service works with versions >=3.0.0 <4`
  })
}

export class SurrealLink {
  private readonly db: Surreal
  #broken = false
  /**
   * Requests that the engine has not answered yet. Closing an engine in this process during a request would end the
   * whole process.
   */
  readonly #pending = new Set<Promise<unknown>>()
  #wire: RawSocket | undefined
  #token = ""
  /**
   * Namespace or database whose existence is being checked: over HTTP each request selects the one its headers name.
   */
  #looking: Selected | undefined
  /** Listeners by the text of a live query's id. */
  readonly #listeners = new Map<string, (ended: boolean) => void>()
  /** Why the connection attempt failed, if only the engine knows. */
  #reason: unknown

  private constructor(
    patience: Timeouts,
    engines: (watch: SurrealEngines.EngineCallbacks) => Engines,
    { answered, failed }: Pick<SurrealEngines.EngineCallbacks, "answered" | "failed">
  ) {
    const watch = {
      failed: (error: unknown) => {
        this.#reason = error
        failed(error)
      },
      answered,
      signedIn: (token: string) => void (this.#token = token)
    }
    this.db = new Surreal({
      engines: engines(watch),
      codecs: SurrealEngines.codecs((query, ended) => this.#listeners.get(query)?.(ended)),
      websocketImpl: socketClass(patience.connectTimeoutMs, (wire) => void (this.#wire = wire)),
      fetchImpl: (input, init) => {
        const headers = new Headers(init?.headers)
        if (this.#looking !== undefined) headers.delete("surreal-db")
        if (this.#looking === "namespace") headers.delete("surreal-ns")
        if (this.#token !== "") headers.set("authorization", `Bearer ${this.#token}`)
        return fetch(input, { ...init, headers, signal: AbortSignal.timeout(patience.requestTimeoutMs) })
      }
    })
    this.db.subscribe("disconnected", () => void (this.#broken = true))
  }

  get broken(): boolean {
    return this.#broken
  }

  /** Sends statements; answers one result per statement. */
  query(statements: string, bindings: Bindings): ReturnType<ReturnType<Surreal["query"]>["responses"]> {
    return this.#watched(this.db.query(statements, bindings).responses())
  }

  /** Whether notifications can arrive: over a socket they do. */
  get notifies(): boolean {
    return this.#wire !== undefined
  }

  /**
   * Calls `heard` for each notification of a live query, and once when it has ended; the returned function stops that.
   */
  hear(query: string, heard: (ended: boolean) => void): () => void {
    this.#listeners.set(query, heard)
    const watched = this.db.subscribe("disconnected", () => heard(true))
    return () => {
      watched()
      this.#listeners.delete(query)
    }
  }

  /** Ends the connection at once: requests in flight fail. Not for the engine in this process. */
  cut(): void {
    this.#broken = true
    if (this.#wire === undefined) void this.db.close().catch(() => undefined)
    else this.#wire.terminate()
  }

  /** Ends the connection in order; does not wait for a server that does not answer. */
  readonly close: Effect.Effect<void> = Effect.suspend(() => {
    if (this.#broken) return Effect.void
    return Effect.promise(() => this.db.close().catch(() => undefined)).pipe(
      Effect.timeout("1 second"),
      Effect.ignore,
      Effect.ensuring(Effect.sync(() => this.#wire?.terminate()))
    )
  })

  /** {@link close} for the engine in this process, after its last answer. */
  readonly closeBehind: Effect.Effect<void> = Effect.suspend(() =>
    Effect.promise(() => Promise.allSettled(this.#pending)).pipe(Effect.zipRight(this.close))
  )

  /**
   * Selects namespace and database. The server creates any name that a user selects, hence the check before. A user who
   * has signed in at a level proves that this level exists.
   */
  async #select(access: Access, level: AuthLevel): Promise<void> {
    const { absent, database, namespace } = access
    const look = async (what: Selected): Promise<void> => {
      this.#looking = what
      const [answer] = await this.query(`INFO FOR ${what === "namespace" ? "ROOT" : "NS"} STRUCTURE`, {})
      if (answer?.success !== true) throw answer?.error ?? new Error("the database did not answer")
      const there = definitionsOf(answer.result as Value, `${what}s`)
      if (!there.some(({ name }) => name === access[what])) throw absentFault(access, what)
      this.#looking = undefined
    }
    // Over HTTP the SDK only stores both names, which it needs before its first request.
    if (!this.notifies) await this.db.use({ namespace, database })
    if (absent !== "create" && level !== "database") {
      if (level === "root") await look("namespace")
      if (this.notifies) await this.db.use({ namespace })
      await look("database")
    }
    if (this.notifies) await this.db.use({ namespace, database })
  }

  #watched<A>(answer: Promise<A>): Promise<A> {
    this.#pending.add(answer)
    const over = (): void => void this.#pending.delete(answer)
    answer.then(over, over)
    return answer
  }

  /**
   * A connection to a server. Error `unauthorized`: the credentials are not those of this level. Fault: there is no
   * such namespace or database, or the server's version is not supported.
   */
  static readonly toServer = (
    address: ServerStore,
    access: Access,
    level: AuthLevel,
    patience: Timeouts
  ): Effect.Effect<SurrealLink, SurrealError | StartFault> =>
    Effect.async<SurrealLink, SurrealError | StartFault>((resume) => {
      const link = new SurrealLink(patience, SurrealEngines.remote, {
        failed: () => undefined,
        answered: (version) => ofVersion(address, version)
      })
      // A refused connection only ends and never settles the SDK's promise; if the promise settles, its reason is
      // better.
      link.db.subscribe(
        "disconnected",
        () =>
          void setImmediate(() =>
            resume(Effect.fail(failureOf(link.#reason ?? new Error("the connection ended before it was usable"))))
          )
      )
      const auth = credentials(access, level)
      link.db
        .connect(address.url, {
          reconnect: false,
          versionCheck: false,
          ...(auth === undefined ? {} : { authentication: () => auth })
        })
        .then(() => link.#select(access, level))
        .then(
          () => resume(Effect.succeed(link)),
          (error: unknown) => {
            link.cut()
            resume(Effect.fail(error instanceof StartFault ? error : failureOf(error)))
          }
        )
      return Effect.sync(() => link.cut())
    })

  /**
   * The database inside this process; its engine is the optional package's. The service does not sign in: no other
   * process can reach it.
   */
  static readonly inProcess = (
    address: EmbeddedStore,
    access: Access,
    engines: Engines,
    patience: Timeouts
  ): Effect.Effect<SurrealLink, SurrealError> =>
    Effect.async<SurrealLink, SurrealError>((resume) => {
      const link: SurrealLink = new SurrealLink(
        patience,
        (watch) => SurrealEngines.embedded(engines, address.url, watch),
        { failed: (error) => resume(Effect.fail(openFailureOf(error))), answered: () => undefined }
      )
      link.#watched(link.db.connect(address.url, { namespace: access.namespace, database: access.database })).then(
        () => resume(Effect.succeed(link)),
        (error: unknown) => resume(Effect.fail(openFailureOf(error)))
      )
      // An engine that cannot be opened never settles, and has nothing to close.
      return Effect.sync(() => void Effect.runFork(link.closeBehind))
    })
}

/** The optional package's engines; a fault tells what to install. */
export const embeddedEngines = (
  address: EmbeddedStore,
  load: () => Promise<{ readonly createNodeEngines: () => Engines }>
): Effect.Effect<Engines, StartFault> =>
  OptionalPackage.load(
    `STORE_ADDR=${address.url} asks for the database inside the process`,
    { name: "@surrealdb/node", version: "3.0.3" },
    async () => (await load()).createNodeEngines()
  )
