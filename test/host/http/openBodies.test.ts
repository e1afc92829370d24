/**
 * Words of what is applied on one request (D61): the client of an SSP and a server that takes lines, over real sockets.
 *
 * The servers are cut, silent and of another version here; what a scheduler does with a word is in its contract.
 */
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from "node:http"
import { connect } from "node:net"
import { Effect, Exit, Scope } from "effect"
import { expect, it } from "vitest"
import { closing } from "../../../kit/processes/closing.ts"
import { until } from "../../../kit/processes/Door.ts"
import { listen, shut } from "../../../kit/processes/listening.ts"
import { layerOver } from "../../../src/drivers/httpSchedulerClient.ts"
import * as Exchange from "../../../src/host/http/exchange.ts"
import { OpenBodies } from "../../../src/host/http/openBodies.ts"
import { type AckRequest, type AckRequestEnd, SchedulerClient } from "../../../src/ports/SchedulerClient.ts"

const afterwards = closing()

const serve = async (listener: RequestListener): Promise<number> => {
  const server = createServer(listener)
  afterwards(() => shut(server))
  return listen(server)
}

/** A server that takes lines; `take` refuses one by false. */
const taking = async (take: (line: string) => boolean, lines = new OpenBodies()) => {
  const requests: Array<IncomingMessage> = []
  const port = await serve((request: IncomingMessage, response: ServerResponse) => {
    requests.push(request)
    lines.take(request, response, "application/x-ndjson", 100, take)
  })
  return { port, lines, requests }
}

/** A request for words at that server, and how it ended. */
const speaking = async (port: number): Promise<{ readonly words: AckRequest; readonly ended: () => string }> => {
  const scope = Effect.runSync(Scope.make())
  afterwards(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const transport = await Effect.runPromise(Scope.extend(Exchange.make(undefined), scope))
  const client = await Effect.runPromise(
    Effect.provide(SchedulerClient, layerOver(transport, `http://127.0.0.1:${port}`))
  )
  let ended = "no"
  const words = client.openAcks!((how: AckRequestEnd) => {
    ended = how
  })
  return { words, ended: () => ended }
}

const word = (seq: number) => ({ ssp_id: "a", registration: 1, seq })
const said = (words: AckRequest, seq: number): Promise<unknown> => until("it is said", () => words.send(word(seq)))

it("D61 words go out one by one once they are admitted, and `end` has all of them read", async () => {
  const heard: Array<string> = []
  const { port, requests } = await taking((line) => heard.push(line) > 0)
  const { ended, words } = await speaking(port)
  expect(words.send(word(0))).toBe(false)
  await said(words, 1)
  await until("the first is heard", () => heard.length === 1)
  expect(words.send(word(2))).toBe(true)
  await until("the second is heard", () => heard.length === 2)
  expect(words.send(word(3))).toBe(true)
  words.end()
  expect(words.send(word(4))).toBe(false)
  await until("it is over", () => ended() !== "no")
  expect([ended(), requests.length]).toEqual(["read", 1])
  expect(heard.map((line) => JSON.parse(line) as unknown)).toEqual([1, 2, 3].map(word))
})

it("D61 nothing is said on a request that was ended before it was admitted", async () => {
  const port = await serve((request, response) => {
    response.writeHead(200).flushHeaders()
    // Admitted, and over a while later.
    request.resume().on("end", () => setTimeout(() => response.end(), 200))
  })
  const { ended, words } = await speaking(port)
  words.end()
  let wasSaid = false
  await until("it is over", () => {
    wasSaid ||= words.send(word(1))
    return ended() !== "no"
  })
  expect([ended(), wasSaid]).toEqual(["read", false])
})

it("D61 a word that is not taken, or a process that stops, cuts the request", async () => {
  const { lines, port } = await taking((line) => !line.includes('"seq":2'))
  const refused = await speaking(port)
  await said(refused.words, 1)
  expect(refused.words.send(word(2))).toBe(true)
  await until("it is over", () => refused.ended() === "cut")
  expect(refused.words.send(word(3))).toBe(false)
  const stopped = await speaking(port)
  await said(stopped.words, 1)
  lines.end()
  await until("it is over", () => stopped.ended() === "cut")
})

it("D61 is refused where a scheduler answers otherwise, waits for the end of the request, or is not there", async () => {
  const other = await speaking(await serve((_, response) => void response.writeHead(404).end("{}")))
  const waits = await speaking(await serve((request, response) => void request.on("end", () => response.end())))
  const gone = await speaking(1)
  for (const { ended, words } of [other, gone, waits]) {
    await until("it is over", () => ended() !== "no", 20_000)
    expect([ended(), words.send(word(1))]).toEqual(["refused", false])
  }
})

it("D61 is cut where nothing is answered any more", async () => {
  const port = await serve((_, response) => void response.writeHead(200).flushHeaders())
  const scope = Effect.runSync(Scope.make())
  afterwards(() => Effect.runPromise(Scope.close(scope, Exit.void)))
  const { pour } = await Effect.runPromise(Scope.extend(Exchange.make(undefined), scope))
  const heard: Array<unknown> = []
  const request = pour!(
    { method: "POST", url: `http://127.0.0.1:${port}/`, headers: {}, withinMs: 5000, silenceMs: 300 },
    {
      head: (status) => heard.push(status),
      data: () => {},
      end: (error) => heard.push(error instanceof Error)
    }
  )
  request.write("\n")
  await until("it is over", () => heard.length === 2)
  expect(heard).toEqual([200, true])
})

it("D61 nothing is heard of a request that was closed", async () => {
  const { port, requests } = await taking(() => true)
  const { ended, words } = await speaking(port)
  await said(words, 1)
  words.close()
  await until("the server sees it", () => requests[0]!.destroyed)
  expect(ended()).toBe("no")
})

it("D61 cuts a client that sends a line without end, takes lines in any pieces, and passes over empty ones", async () => {
  const heard: Array<string> = []
  const { port, requests } = await taking((line) => heard.push(line) > 0)
  const bytes = Buffer.from('\n{"é":1}\n\n{}\n')
  const socket = connect(port, "127.0.0.1")
  afterwards(async () => void socket.destroy())
  socket.on("error", () => {})
  socket.write("POST / HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n")
  for (const byte of bytes)
    socket.write(Buffer.concat([Buffer.from("1\r\n"), Buffer.from([byte]), Buffer.from("\r\n")]))
  await until("both lines are heard", () => heard.length === 2)
  expect(heard).toEqual(['{"é":1}', "{}"])
  socket.write(`65\r\n${"x".repeat(101)}\r\n`)
  await until("it is cut", () => requests[0]!.destroyed)
  expect(heard).toHaveLength(2)
})
