/**
 * An HTTP server over TLS: reads its files again when they change, knows which clients have shown a certificate, and
 * answers clients that speak plain HTTP.
 *
 * The handshake asks for a certificate without demanding one, because probes, browsers and a database's events have
 * none; `core/access/callers.ts` decides which requests need one.
 */
import type { Server as HttpServer, ServerOptions } from "node:http"
import { createServer } from "node:https"
import { Socket } from "node:net"
import { TLSSocket } from "node:tls"
import type { Tls } from "../../node/config/tls.ts"
import { contextOf } from "./tlsFiles.ts"

/** Longest time of a connection whose client begins no handshake. */
const handshakeMs = 10_000

const proven = new WeakSet<Socket>()

/** Whether the client has shown a certificate of the authority. */
export const hasCertificate = (socket: Socket): boolean => proven.has(socket)

/**
 * The TCP connection below TLS, which the server counts. Node documents no way to it; if none is found, the connection
 * itself.
 */
export const tcpSocketOf = (socket: object): object =>
  "_parent" in socket && socket._parent instanceof Socket ? socket._parent : socket

export const createTlsServer = (options: ServerOptions & { readonly requestTimeout: number }, tls: Tls): HttpServer => {
  const server = createServer({
    ...options,
    ...contextOf(tls.current()),
    requestCert: tls.isMutual,
    rejectUnauthorized: false,
    handshakeTimeout: Math.min(handshakeMs, options.requestTimeout)
  })
  // A resumed session counts as authorized even if no certificate was ever shown.
  server.on("secureConnection", (socket) => {
    if (socket.authorized && socket.getPeerX509Certificate() !== undefined) proven.add(socket)
  })
  return server
}

/**
 * Lets new files count for new connections, which resume no earlier session; the returned function ends that.
 * `onFailure`: the old files stay.
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

/** The TCP connection, for an answer to a client that speaks plain HTTP; undefined if none can be given. */
export const plainSocketOf = (socket: object, code: string | undefined): Socket | undefined => {
  const raw = socket instanceof TLSSocket && code === "ERR_SSL_HTTP_REQUEST" ? tcpSocketOf(socket) : undefined
  return raw instanceof Socket && raw !== socket && raw.writable ? raw : undefined
}
