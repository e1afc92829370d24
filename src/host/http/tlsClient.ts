/**
 * Connections of a node to others over TLS: with its own certificate and against the cluster's authority, if there is
 * one.
 *
 * The files are read for each connection, because a reload replaces them. No session is resumed: a resumed one does not
 * check the certificate's host name again.
 */

import { X509Certificate } from "node:crypto"
import type { LookupFunction } from "node:net"
import { TLSSocket } from "node:tls"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as NodeHttpClient from "@effect/platform-node/NodeHttpClient"
import { Agent, buildConnector } from "@effect/platform-node/Undici"
import { Effect, Layer } from "effect"
import type { Tls } from "../../node/config/tls.ts"
import type { TlsMaterial } from "../../ports/ConfigSource.ts"
import { contextOf, minVersion } from "./tlsFiles.ts"

interface ConnectOptions {
  /** In milliseconds. */
  readonly timeout?: number
  /** Replaces the machine's own resolver. */
  readonly lookup?: LookupFunction
}

/**
 * Without an authority of the cluster: verifies by the authorities that the machine trusts, and shows no certificate.
 */
export const connectorOf = (tls: Tls | undefined, options: ConnectOptions): buildConnector.connector => {
  const plain = { minVersion, maxCachedSessions: 0, ...options } as const
  if (tls?.isMutual !== true) return buildConnector(plain)
  let made: { readonly of: TlsMaterial; readonly connect: buildConnector.connector } | undefined
  return (asked, done) => {
    const of = tls.current()
    if (made?.of !== of) made = { of, connect: buildConnector({ ...plain, ...contextOf(of) }) }
    made.connect(asked, done)
  }
}

const over = (connect: buildConnector.connector): Layer.Layer<HttpClient.HttpClient> =>
  Layer.scoped(
    HttpClient.HttpClient,
    Effect.map(
      Effect.acquireRelease(
        Effect.sync(() => new Agent({ connect })),
        (agent) => Effect.promise(() => agent.destroy())
      ),
      (agent) => NodeHttpClient.makeUndici(agent)
    )
  )

const isOwn = (socket: TLSSocket, { cert }: TlsMaterial): boolean =>
  socket.getPeerX509Certificate()?.fingerprint256 === new X509Certificate(cert).fingerprint256

/**
 * A client for commands that ask the process with the same settings, at an address that its certificate need not name:
 * a server that shows this very certificate has its key, so it is that process. Any other server is verified as usual.
 */
export const layerOwn = (tls: Tls | undefined): Layer.Layer<HttpClient.HttpClient> => {
  if (tls === undefined) return FetchHttpClient.layer
  const material = tls.current()
  const connect = buildConnector({
    minVersion,
    maxCachedSessions: 0,
    ...(tls.isMutual ? contextOf(material) : {}),
    rejectUnauthorized: false
  })
  return over((asked, done) =>
    connect(asked, (...result) => {
      const [, socket] = result
      if (!(socket instanceof TLSSocket) || socket.authorized || isOwn(socket, material)) return done(...result)
      socket.destroy()
      done(
        new Error(`the certificate of ${asked.hostname} is not to be trusted: ${String(socket.authorizationError)}`),
        null
      )
    })
  )
}
