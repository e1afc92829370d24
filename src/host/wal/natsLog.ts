/**
 * The log on NATS, as a layer over the optional client, which is loaded only if a log's address is set.
 *
 * The client's types are declared here, because a user need not have installed it. It reconnects by itself, to any
 * server of the cluster, for as long as the process lives.
 */
import { randomUUID } from "node:crypto"
import { Effect, Layer } from "effect"
import { firstLineOf } from "../../core/reason.ts"
import type { NatsUrl } from "../../core/settings/logUrl.ts"
import { type Connection, type Headers, Link } from "../../drivers/nats/link.ts"
import * as NatsLog from "../../drivers/nats/sharedLog.ts"
import { type Durability, SharedLog } from "../../ports/SharedLog.ts"
import type { StartFault } from "../../ports/StartFault.ts"
import { startFault } from "../../ports/Wal.ts"
import * as OptionalPackage from "../optionalPackage.ts"
import { unreachable } from "./unreachable.ts"

export interface NatsLogAddress {
  readonly address: NatsUrl
  readonly leaseMs: number
  readonly durability: Durability | undefined
  readonly replicas: number
}

interface Closable extends Connection {
  readonly close: () => Promise<void>
  /** Events of the connection; ends with it. */
  readonly status: () => AsyncIterable<{ readonly type: string }>
}

interface Client {
  readonly connect: (options: object) => Promise<Closable>
  readonly headers: () => Headers
}

const optional = "@nats-io/transport-node"
const load = (): Promise<Client> => import(/* @vite-ignore */ optional)

const client = (from: () => Promise<Client>): Effect.Effect<Client, StartFault> =>
  OptionalPackage.load("SVC_LOG_URL asks for a log on NATS", { name: optional, version: "3.4.0" }, from)

const loginOf = ([first, second]: NatsUrl["credentials"]): object =>
  first === undefined ? {} : second === undefined ? { token: first } : { user: first, pass: second }

/** Why there is no connection, with advice if the message does not give any. */
const reasonOf = (error: unknown): string => {
  const said = firstLineOf(error)
  if ((error as { readonly name?: unknown }).name === "AuthorizationError")
    return `the server refuses its user, password or token (${said})`
  return /self-signed|unable to (?:verify|get)/.test(said)
    ? `${said}: Node must trust the authority of the server's certificate (NODE_EXTRA_CA_CERTS)`
    : said
}

const inboxOf = (log: string): string => `_INBOX.svc-${log}`

const listen = async (connection: Closable, link: Link): Promise<void> => {
  for await (const { type } of connection.status())
    if (type === "disconnect") link.disconnected()
    else if (type === "reconnect") link.reconnected()
}

/** Opens the log for reading; a leader is not disturbed. */
export const layerNats = (
  { address, durability, leaseMs, replicas }: NatsLogAddress,
  from: () => Promise<Client> = load
): Layer.Layer<SharedLog, StartFault> =>
  Layer.scoped(
    SharedLog,
    Effect.gen(function* () {
      const { connect, headers } = yield* client(from)
      const { credentials, isTls, log, servers, shown } = address
      const connection = yield* Effect.acquireRelease(
        Effect.tryPromise({
          try: () =>
            connect({
              servers: [...servers],
              ...loginOf(credentials),
              ...(isTls ? { tls: {} } : {}),
              name: "scheduler",
              // An inbox of this log alone: under a name that all clusters share, each user could read the answers of
              // others.
              inboxPrefix: inboxOf(log),
              timeout: 5_000,
              maxReconnectAttempts: -1,
              reconnectTimeWait: 100,
              reconnectJitter: 50,
              ignoreAuthErrorAbort: true,
              // Pings, so that a server that hangs is left before the lease ends.
              pingInterval: Math.max(250, leaseMs / 6),
              maxPingOut: 2
            }),
          catch: (error) => unreachable(shown, reasonOf(error))
        }),
        (open) => Effect.promise(() => open.close().catch(() => {}))
      )
      const answerMs = Math.min(5000, Math.max(500, leaseMs / 2))
      const link = new Link({ connection, headers, shown, answerMs })
      yield* Effect.forkScoped(Effect.promise(() => listen(connection, link)))
      return yield* Effect.mapError(NatsLog.open(link, { log, replicas, durability, newId: randomUUID }), startFault)
    })
  )
