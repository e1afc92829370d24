/**
 * An HTTP server over TLS: reads its files again when they change, tells which clients have shown a certificate, and
 * answers clients that speak plain HTTP.
 *
 * The handshake asks for a certificate and does not demand one, because probes, browsers and a database's events have
 * none; which requests need one is decided per request (`core/access/callers.ts`).
 */
import type { Server as HttpServer, ServerOptions } from "node:http"
import { createServer } from "node:https"
import { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import type { Tls } from "../../node/config/tls.ts"
import { contextOf } from "./tlsFiles.ts"

/** A client that connects and begins no handshake holds a connection no longer than this. */
const handshakeMs = 10_000

const proven = new WeakSet<Socket>()

/** Whether the other side has shown a certificate of the authority. */
export const isProven = (socket: Socket): boolean => proven.has(socket)

/**
 * The connection below TLS, which is what a server counts. Node documents no way there; where it has none the
 * connection itself is all there is.
 */
export const rawOf = (socket: object): object =>
  "_parent" in socket && socket._parent instanceof Socket ? socket._parent : socket

export const createTlsServer = (options: ServerOptions & { readonly requestTimeout: number }, tls: Tls): HttpServer => {
  const server = createServer({
    ...options,
    ...contextOf(tls.current()),
    requestCert: tls.isMutual,
    rejectUnauthorized: false,
    handshakeTimeout: Math.min(handshakeMs, options.requestTimeout)
  })
  // A session that is resumed counts as authorized even where no certificate was ever shown.
  server.on("secureConnection", (socket) => {
    if (socket.authorized && socket.getPeerX509Certificate() !== undefined) proven.add(socket)
  })
  return server
}

/**
 * Puts new files in force for new connections, which resume no session of before; answers what ends that. `onFailure`:
 * the old ones stay.
 */
export const followFiles = (server: HttpServer, tls: Tls, onFailure: (error: unknown) => void): (() => void) =>
  tls.onReplaced(() => {
    try {
      if ("setSecureContext" in server && typeof server.setSecureContext === "function")
        server.setSecureContext(contextOf(tls.current()))
    } catch (error) {
      onFailure(error)
    }
  })

/** Below TLS, for an answer to a client that speaks plain HTTP; undefined where it cannot be given. */
export const plainSide = (socket: object, code: string | undefined): Socket | undefined => {
  const raw = socket instanceof TLSSocket && code === "ERR_SSL_HTTP_REQUEST" ? rawOf(socket) : undefined
  return raw instanceof Socket && raw !== socket && raw.writable ? raw : undefined
}
