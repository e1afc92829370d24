/**
 * The SDK's engines with changes for a service that runs for months.
 *
 * Each was found by running it: a failed connection attempt is reported instead of never settling; a session's token
 * stays here instead of with the SDK, which renews it in a busy loop if it is valid for more than 24 days; a ping in
 * flight when its connection ends is ignored instead of ending the process; a folder's name reaches the embedded engine
 * unchanged, not percent-encoded. Values pass through our own codec.
 */
import {
  type ConnectionState,
  createRemoteEngines,
  type DriverContext,
  type Engines,
  type SurrealEngine
} from "surrealdb"
import * as CborReader from "../../core/surql/values/cbor/cborReader.ts"
import * as CborWriter from "../../core/surql/values/cbor/cborWriter.ts"
import { isObj, Uuid, type Value } from "../../core/surql/values/value.ts"

/** Callbacks of an engine to its connection. */
export interface EngineCallbacks {
  readonly failed: (error: unknown) => void
  /** Throws if the server's version is not supported. */
  readonly answered: (version: string) => void
  readonly signedIn: (token: string) => void
}

/** Called for a notification: the text of its live query's id, and whether that has ended. */
type Heard = (query: string, ended: boolean) => void

/**
 * The SDK accepts notifications of its own types only; so they are taken out here, and the SDK gets an answer without a
 * request.
 */
const decode = (bytes: Uint8Array, heard: Heard): Value => {
  const frame = CborReader.decode(bytes)
  if (!isObj(frame) || typeof frame["id"] === "string" || !isObj(frame["result"])) return frame
  const { action, id } = frame["result"]
  if (!(id instanceof Uuid) || typeof action !== "string") return frame
  heard(id.text, action === "KILLED")
  return { id: "" }
}

export const codecs = (heard: Heard) => ({
  cbor: () => ({
    encode: <T>(data: T): Uint8Array => CborWriter.encode(data as Value),
    decode: <T>(bytes: Uint8Array): T => decode(bytes, heard) as T
  })
})

type Factory = Engines[string]

type Send = (request: { readonly method: string }) => Promise<unknown>

/** The engine sends pings and handles none of their failures; a later request reports a broken connection too. */
const withQuietPings = (engine: SurrealEngine & { send?: Send }): void => {
  const send = engine.send?.bind(engine)
  if (send === undefined) return
  engine.send = (request) => {
    const answer = send(request)
    if (request.method === "ping") answer.catch(() => undefined)
    return answer
  }
}

const watched =
  (factory: Factory, watch: EngineCallbacks) =>
  (context: DriverContext): SurrealEngine => {
    const engine = factory(context)
    const signin = engine.signin.bind(engine)
    const version = engine.version.bind(engine)
    engine.subscribe("error", watch.failed)
    withQuietPings(engine)
    engine.signin = async (auth, session) => {
      watch.signedIn((await signin(auth, session)).access)
      return { access: "" }
    }
    engine.version = async () => {
      const answer = await version()
      watch.answered(answer.version)
      return answer
    }
    return engine
  }

/** The state with which the embedded engine opens, except that its address is the operator's text. */
const addressedBy = (text: string, state: ConnectionState): ConnectionState => {
  const url = new URL(state.url)
  url.toString = () => text
  return Object.create(state, { url: { value: url } }) as ConnectionState
}

const opening =
  (factory: Factory, text: string) =>
  (context: DriverContext): SurrealEngine => {
    const engine = factory(context)
    const open = engine.open.bind(engine)
    engine.open = (state) => open(addressedBy(text, state))
    return engine
  }

const mapFactories = (engines: Engines, wrap: (factory: Factory) => Factory): Engines =>
  Object.fromEntries(Object.entries(engines).map(([scheme, factory]) => [scheme, wrap(factory)]))

export const remote = (watch: EngineCallbacks): Engines =>
  mapFactories(createRemoteEngines(), (factory) => watched(factory, watch))

/** `engines` of the optional package, opened at `address` as it is written. */
export const embedded = (engines: Engines, address: string, watch: EngineCallbacks): Engines =>
  mapFactories(engines, (factory) => watched(opening(factory, address), watch))
