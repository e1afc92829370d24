/**
 * A `POST` whose body goes on, taken line by line.
 *
 * The status is sent before the body has come: its client learns that lines are read as they are sent, by nothing that
 * stands between and waits for a whole body. What is wrong with a line is not answered here; the connection is cut, and
 * the client asks again by a request of its own.
 */
import type { IncomingMessage, ServerResponse } from "node:http"
import { StringDecoder } from "node:string_decoder"
import { LineCutter } from "../../core/record/feedLines.ts"

/** The requests of a server whose bodies go on. */
export class OpenBodies {
  private readonly open = new Set<ServerResponse>()

  /** Takes lines that are not empty until `take` answers false, one has over `most` characters, or {@link end}. */
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

  /** The process stops: requests that would go on are not waited for. */
  end(): void {
    for (const { req } of this.open) req.destroy()
  }
}
