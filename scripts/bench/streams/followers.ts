/** Clients that follow: sockets of the bench, since a client that costs more than the server measures itself. */
import { connect, type Socket } from "node:net"
import { secret, sleep } from "../../../kit/processes/Door.ts"
import { requestBytes } from "../load.ts"
import { type Form, view } from "./servers.ts"

const asks: { readonly [F in Form]: (view: string) => Buffer } = {
  one: (id) => Buffer.from(`GET /view/${id}/stream HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${secret}\r\n\r\n`),
  several: (id) => requestBytes("/stream", { views: [{ view: id }] })
}

export class Followers {
  readonly sockets: ReadonlyArray<Socket>
  /** Deltas that have come over all of them. */
  deltas: number

  private constructor(sockets: ReadonlyArray<Socket>) {
    this.sockets = sockets
    this.deltas = 0
    for (const socket of sockets)
      socket.on("data", (chunk: Buffer) => {
        for (let at = chunk.indexOf("event: delta"); at >= 0; at = chunk.indexOf("event: delta", at + 12)) this.deltas++
      })
  }

  /** Opened fifty at a time; each waits for its snapshot. `viewOf`: what client number so follows. */
  static async open(port: number, count: number, form: Form, viewOf = (_: number) => view): Promise<Followers> {
    const one = (n: number): Promise<Socket> =>
      new Promise((done, failed) => {
        const socket = connect(port, "127.0.0.1", () => socket.write(asks[form](viewOf(n))))
        let text = ""
        const read = (chunk: Buffer): void => {
          text += chunk.toString("latin1")
          if (/HTTP\/1.1 [^2]|event: refused/.test(text)) return failed(new Error(text.slice(0, 400)))
          if (!/event: snapshot\n.*\n?data: .*\n\n/.test(text)) return
          socket.off("data", read)
          done(socket)
        }
        socket.on("data", read)
        socket.once("error", failed)
      })
    const sockets: Array<Socket> = []
    while (sockets.length < count) {
      const first = sockets.length
      sockets.push(
        ...(await Promise.all(Array.from({ length: Math.min(50, count - first) }, (_, k) => one(first + k))))
      )
    }
    return new Followers(sockets)
  }

  async close(): Promise<void> {
    await Promise.all(
      this.sockets.map((socket) => new Promise<void>((done) => void socket.once("close", () => done()).destroy()))
    )
    await sleep(300)
  }
}
