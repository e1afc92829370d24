/**
 * The WebSocket the SDK speaks through, on every runtime the same one.
 *
 * Not the runtime's own: Node 20 has none, and with the others the SDK loses one of two frames that arrive in one tick.
 * This one hands over a frame at a time, gives up a handshake that is not answered, and can be cut without a farewell:
 * a server that hangs would not answer one.
 */
import { createRequire } from "node:module"

/** An open or opening connection, as far as we deal with it ourselves. */
export interface Wire {
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
  ) => Wire
}

/** One answer may be this large; chunks and batches stay far below it. */
const maxPayload = 512 * 1024 * 1024

/** A WebSocket class for the SDK; every socket it makes is shown to `made`. */
export const socketClass = (handshakeTimeoutMs: number, made: (wire: Wire) => void): typeof WebSocket => {
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
