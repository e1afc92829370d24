/**
 * Takes a `POST` with an endless body line by line.
 *
 * The status is sent before the body: it tells the client that lines are read as they are sent, and that no proxy waits
 * for a whole body. A wrong line is not answered; the connection is cut, and the client asks again by a request of its
 * own.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { StringDecoder } from "node:string_decoder"
import { LineCutter } from "../../core/record/feedLines.ts"

/** The requests of a server with endless bodies. */
export class OpenBodies {
  private readonly open = new Set<ServerResponse>()

  /** Takes non-empty lines until `take` answers false, a line has more than `most` characters, or {@link end}. */
  take(
    request: IncomingMessage,
    response: ServerResponse,
    contentType: string,
    most: number,
    take: (line: string) => boolean
  ): void {
    const cutter = new LineCutter(most)
    const decoder = new StringDecoder("utf8")
    this.open.add(response)
    response.once("close", () => this.open.delete(response))
    if (response.destroyed) return
    response.writeHead(200, { "content-type": contentType, "x-content-type-options": "nosniff" })
    response.flushHeaders()
    request.on("data", (bytes: Buffer) => {
      if (request.destroyed) return
      const lines = cutter.push(decoder.write(bytes))
      if (lines?.every((line) => line === "" || take(line)) !== true) request.destroy()
    })
    request.on("end", () => response.end())
  }

  /** Cuts these requests when the process stops, since they have no end to wait for. */
  end(): void {
    for (const { req } of this.open) req.destroy()
  }
}
