/**
 * The yardstick of durable ingest: a bare `node:http` server that parses a body, appends it to a file with one
 * fdatasync for all that have arrived meanwhile, and then answers.
 *
 * Why no more than that: it is the least a Node server can do that loses nothing it has acknowledged.
 */
import { fdatasync, openSync, writeSync } from "node:fs"
import { createServer, type ServerResponse } from "node:http"

const file = openSync(String(process.env["FILE"]), "a")
let waiting: Array<{ readonly line: string; readonly response: ServerResponse }> = []
let flushing = false
let seq = 0

const flush = (): void => {
  if (flushing || waiting.length === 0) return
  flushing = true
  const batch = waiting
  waiting = []
  writeSync(file, batch.map(({ line }) => line).join(""))
  fdatasync(file, (error) => {
    if (error !== null) throw error
    for (const { response } of batch) {
      const answer = JSON.stringify({ seq: ++seq, delivered: 0 })
      response.writeHead(200, { "content-type": "application/json", "content-length": answer.length })
      response.end(answer)
    }
    flushing = false
    flush()
  })
}

createServer((request, response) => {
  const chunks: Array<Buffer> = []
  request.on("data", (chunk: Buffer) => chunks.push(chunk))
  request.on("end", () => {
    const text = Buffer.concat(chunks).toString("utf8")
    waiting.push({ line: `${JSON.stringify(JSON.parse(text))}\n`, response })
    setImmediate(flush)
  })
}).listen(Number(process.env["PORT"]), "127.0.0.1")
