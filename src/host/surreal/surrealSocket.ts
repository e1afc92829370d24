/**
 * The WebSocket that the SDK uses, the same on every runtime.
 *
 * Not the runtime's own: Node 20 has none, and with the others the SDK loses one of two frames that arrive in one tick.
 * This one delivers one frame at a time, gives up an unanswered handshake, and can be cut without a closing handshake,
 * which a server that hangs would not answer.
 */
import { createRequire } from "node:module"

/** An open or opening connection, the part used here. */
export interface RawSocket {
  readonly terminate: () => void
}

// The package ships no types; these are the parts used here.
const { WebSocket: Ws } = createRequire(import.meta.url)("ws") as {
  readonly WebSocket: new (
    url: string,
    protocols: string | Array<string>,
    options: {
      readonly allowSynchronousEvents: boolean
      readonly handshakeTimeout: number
      readonly maxPayload: number
      readonly perMessageDeflate: boolean
    }
  ) => RawSocket
}

/** Largest answer; chunks and batches stay far below it. */
const maxPayload = 512 * 1024 * 1024

/** A WebSocket class for the SDK; `made` is called with every socket. */
export const socketClass = (handshakeTimeoutMs: number, made: (wire: RawSocket) => void): typeof WebSocket => {
  class Socket extends Ws {
    constructor(url: string, protocols: string | Array<string>) {
      super(url, protocols, {
        allowSynchronousEvents: false,
        handshakeTimeout: handshakeTimeoutMs,
        maxPayload,
        perMessageDeflate: false
      })
      made(this)
    }
  }
  return Socket as unknown as typeof WebSocket
}
