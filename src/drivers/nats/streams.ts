/**
 * The streams of a log on JetStream: created if missing, and checked for settings that would lose records.
 *
 * Nothing is served before the check. A single server accepts a request for three copies silently, so the existing
 * copies are counted.
 */
import { Effect } from "effect"
import type { WalFailed } from "../../ports/Wal.ts"
import { streamOf, subjectOf } from "./journal.ts"
import type { Answer, ApiError, Connection, Link } from "./link.ts"
import * as Members from "./members.ts"

export interface StreamOptions {
  readonly log: string
  /** Servers that keep each message. */
  readonly replicas: number
}

interface Config {
  readonly name: string
  readonly num_replicas: number
  readonly subjects?: ReadonlyArray<string>
  readonly storage: string
  readonly retention: string
  readonly max_age: number
  readonly max_bytes: number
  readonly max_msgs: number
  readonly max_msgs_per_subject: number
  readonly max_msg_size?: number
  readonly mirror?: unknown
  readonly sources?: unknown
  readonly sealed?: boolean
  readonly deny_delete?: boolean
  readonly allow_rollup_hdrs?: boolean
  readonly allow_direct?: boolean
}

export interface State {
  readonly messages: number
  readonly bytes: number
  readonly first_seq: number
  readonly last_seq: number
}

const oldestServer = [2, 9] as const
/** Smaller messages leave little room beside a frame's head line. */
const leastPayload = 65_536
const mostPieceBytes = 524_288
const headBytes = 16_384

const noStream = 10_059
const nameTaken = 10_058
/** Error codes for too few servers: with JetStream, or with room for a copy. */
const noPeers: ReadonlySet<number> = new Set([10_005, 10_074])

const isOlder = (version: string): boolean => {
  const [major = 0, minor = 0] = version.split(".").map(Number)
  return !(major > oldestServer[0] || (major === oldestServer[0] && minor >= oldestServer[1]))
}

/** Why this server cannot keep the log; undefined if it can. */
export const serverFault = ({ max_payload: payload, version }: NonNullable<Connection["info"]>): string | undefined => {
  if (isOlder(version)) return `the server is NATS ${version}; it must be ${oldestServer.join(".")} or later`
  return payload < leastPayload
    ? `the server's max_payload is ${payload} bytes; set it to ${leastPayload} at least, on each server alike`
    : undefined
}

/** Bytes of content in one message. */
export const pieceBytes = ({ max_payload: payload }: Pick<NonNullable<Connection["info"]>, "max_payload">): number =>
  Math.min(mostPieceBytes, payload - headBytes)

const replicasFault = (replicas: number, why: string): string =>
  `it cannot keep ${replicas} copies (SVC_LOG_REPLICAS): ${why}. Run JetStream on ${replicas} servers of one cluster at least, or set SVC_LOG_REPLICAS to fewer; with 1 a single disk holds the log`

const isSame = (some: ReadonlyArray<string> = [], others: ReadonlyArray<string>): boolean =>
  some.length === others.length && some.every((each) => others.includes(each))

/** Why an existing stream cannot keep the log; undefined if it can. */
export const configFault = (config: Config, ...subjects: ReadonlyArray<string>): string | undefined => {
  const wrong = [
    config.storage === "file" ? "" : `its storage is ${config.storage}, and must be file`,
    config.retention === "limits" ? "" : `its retention is ${config.retention}, and must be limits`,
    isSame(config.subjects, subjects) ? "" : `its subjects must be ${subjects.join(" and ")}`,
    config.mirror === undefined && config.sources === undefined ? "" : "it is filled from another stream",
    config.sealed === true ? "it is sealed" : "",
    ...(["max_age", "max_bytes", "max_msgs", "max_msgs_per_subject", "max_msg_size"] as const).map((limit) =>
      (config[limit] ?? -1) > 0 ? `it has a ${limit} of ${config[limit]}, by which records would be lost` : ""
    )
  ].filter((each) => each !== "")
  return wrong.length === 0
    ? undefined
    : `its stream ${config.name} is not as it was made: ${wrong.join("; ")}. Put that back with "nats stream edit", or name another log`
}

export const unlimited = {
  retention: "limits",
  storage: "file",
  max_msgs: -1,
  max_bytes: -1,
  max_age: 0,
  max_msgs_per_subject: -1,
  max_msg_size: -1,
  discard: "new"
} as const

const copiesOf = ({ cluster }: Answer): number =>
  1 + ((cluster as { readonly replicas?: ReadonlyArray<unknown> } | undefined)?.replicas?.length ?? 0)

const refused = (link: Link, error: ApiError, replicas: number): WalFailed =>
  noPeers.has(error.err_code ?? 0)
    ? link.failed("failed", replicasFault(replicas, error.description ?? ""))
    : link.refusal(error)

/** The state of the stream, created if missing. */
const made = (link: Link, config: Partial<Config> & { readonly name: string }, replicas: number) =>
  link.again(
    Effect.gen(function* () {
      const found = yield* link.api(`STREAM.INFO.${config.name}`)
      if (found.error === undefined) return found
      if (found.error.err_code !== noStream) return yield* refused(link, found.error, replicas)
      const created = yield* link.api(`STREAM.CREATE.${config.name}`, { ...config, num_replicas: replicas })
      if (created.error === undefined || created.error.err_code === nameTaken)
        return yield* link.asked(`STREAM.INFO.${config.name}`)
      return yield* refused(link, created.error, replicas)
    })
  )

/** Raises the number of copies to `replicas`. */
const copied = (link: Link, info: Answer, replicas: number): Effect.Effect<void, WalFailed> =>
  Effect.gen(function* () {
    const config = info.config as Config
    if (config.num_replicas < replicas) {
      const { error } = yield* link.again(
        link.api(`STREAM.UPDATE.${config.name}`, { ...config, num_replicas: replicas })
      )
      if (error !== undefined) return yield* refused(link, error, replicas)
    }
    const copies = copiesOf(yield* link.asked(`STREAM.INFO.${config.name}`))
    if (copies < replicas)
      return yield* link.failed(
        "failed",
        replicasFault(replicas, `its stream ${config.name} has ${copies}, and no server for another`)
      )
  })

/** Creates or checks a stream that loses no message by itself. */
export const ensureStream = (
  link: Link,
  config: Partial<Config> & { readonly name: string; readonly subjects: ReadonlyArray<string> },
  replicas: number
): Effect.Effect<void, WalFailed> =>
  Effect.gen(function* () {
    const found = yield* made(link, config, replicas)
    const wrong = configFault(found.config as Config, ...config.subjects)
    if (wrong !== undefined) return yield* link.failed("failed", wrong)
    yield* copied(link, found, replicas)
  })

/** Checks the server and creates the streams; answers the state of the log's stream. */
export const prepare = (link: Link, { log, replicas }: StreamOptions): Effect.Effect<State, WalFailed> =>
  Effect.gen(function* () {
    const { info } = link.connection
    const fault = info === undefined ? "the connection is closed" : serverFault(info)
    if (fault !== undefined) return yield* link.failed("failed", fault)
    yield* Effect.mapError(link.asked("INFO"), (error) =>
      error.reason === "failed"
        ? error
        : link.failed(
            "failed",
            `the server has no JetStream for this user: turn it on ("jetstream {}" in its configuration, or -js), for the account too. It said: ${error.message}`
          )
    )
    yield* ensureStream(
      link,
      { ...unlimited, name: streamOf(log), subjects: [subjectOf(log, "*")], deny_delete: true },
      replicas
    )
    yield* copied(link, yield* made(link, Members.config(log), replicas), replicas)
    return (yield* link.asked(`STREAM.INFO.${streamOf(log)}`)).state as State
  })
