/**
 * The yardstick for streams and reads: a bare `node:http` server that writes the same prepared text to every follower.
 *
 * Why no more than that: it is the least any Node server can spend on a follower, so a ratio to it means something on
 * any machine. It gets its texts from the bench, which has read them from the service that it measures.
 */
import { createServer, type ServerResponse } from "node:http"

const { answer, delta, heartbeatMs, port, snapshot } = JSON.parse(process.env["BARE"] ?? "") as {
  readonly [name in "answer" | "delta" | "snapshot"]: string
} & { readonly port: number; readonly heartbeatMs: number }

const followers = new Set<ServerResponse>()
const tell = (text: string): void => {
  const bytes = Buffer.from(text)
  for (const follower of followers) follower.write(bytes)
}

setInterval(() => tell(": still here\n\n"), heartbeatMs)

const json = { "content-type": "application/json", "content-length": Buffer.byteLength(answer) }

createServer({ keepAliveTimeout: 65_000 }, (request, response) => {
  if (request.url?.endsWith("/stream") === true) {
    request.resume()
    response.writeHead(200, { "content-type": "text/event-stream", "cache-control": "no-store" })
    response.write(snapshot)
    followers.add(response)
    return void response.once("close", () => followers.delete(response))
  }
  if (request.method === "GET") return void response.writeHead(200, json).end(answer)
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const body = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { readonly op?: string }
    if (body.op !== undefined) tell(delta)
    response.writeHead(200, json).end(answer)
  })
}).listen(port, "127.0.0.1")
