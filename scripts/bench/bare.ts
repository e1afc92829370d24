/**
 * The yardstick: a bare `node:http` server that reads a body, parses it as JSON and answers as `/ingest` does.
 *
 * Why no more than that: it is the least any Node server can spend on such a request, so a ratio to it means something
 * on any machine.
 */
import { createServer } from "node:http"

const port = Number(process.env["PORT"])

createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const change = JSON.parse(Buffer.concat(chunks).toString("utf8")) as { readonly op?: string }
    const answer = change.op === undefined ? "{}" : '{"views_affected":0,"edges_updated":0}'
    response.writeHead(200, { "content-type": "application/json", "content-length": answer.length })
    response.end(answer)
  })
}).listen(port, "127.0.0.1")
