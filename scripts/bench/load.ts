/**
 * A load generator and a meter: prepared requests over keep-alive sockets, and the CPU time a server process spent on
 * them.
 *
 * Why raw sockets: the generator must cost less than the server, or it measures itself. Why CPU time from /proc and not
 * requests per second: on shared cores the first is stable and the second is not.
 */
import { readdirSync, readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { secret } from "../../kit/processes/Door.ts"

/** What is judged: `--check` fails when a ratio is above its goal. */
export interface Judged {
  readonly ratio: number
  readonly goal: number
}

/** A measurement beside another, as a part of the bench answers it. */
export interface Line extends Judged {
  readonly what: string
  readonly against: string
}

/** Prints it as a row of the table of figures. */
export const print = ({ against, goal, ratio, what }: Line): void =>
  console.log(`| ${what} / ${against} | ${ratio.toFixed(2)} | at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`)

export const requestBytes = (path: string, body: unknown): Buffer => {
  const text = JSON.stringify(body)
  return Buffer.from(
    `POST ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${secret}\r\ncontent-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`
  )
}

/** Time a process has run on a processor so far, all its threads, in microseconds; the scheduler counts nanoseconds. */
export const cpuMicros = (pid: number): number => {
  let nanos = 0
  for (const thread of readdirSync(`/proc/${pid}/task`))
    nanos += Number(readFileSync(`/proc/${pid}/task/${thread}/schedstat`, "utf8").split(" ")[0])
  return nanos / 1000
}

const open = (port: number): Promise<Socket> =>
  new Promise((done, failed) => {
    const socket = connect(port, "127.0.0.1", () => done(socket))
    socket.setNoDelay(true)
    socket.once("error", failed)
  })

/** Sends `count` requests over one socket, the next when the last is answered; every answer must be a 200. */
const lane = (socket: Socket, next: () => Buffer | undefined): Promise<void> =>
  new Promise((done, failed) => {
    let text = ""
    const send = (): void => {
      const bytes = next()
      if (bytes === undefined) {
        socket.end()
        return done()
      }
      socket.write(bytes)
    }
    socket.on("error", failed)
    socket.on("data", (chunk) => {
      text += chunk.toString("latin1")
      const end = text.indexOf("\r\n\r\n")
      if (end < 0) return
      const length = Number(/content-length: *(\d+)/i.exec(text)?.[1] ?? Number.NaN)
      if (text.length < end + 4 + length) return
      if (!text.startsWith("HTTP/1.1 200")) return failed(new Error(text.slice(0, 400)))
      text = ""
      send()
    })
    send()
  })

/**
 * Posts `count` requests drawn from `make` over `connections` sockets; answers CPU microseconds of `pid` per request.
 */
export const load = async (
  port: number,
  pid: number,
  count: number,
  make: (n: number) => Buffer,
  connections = 16
): Promise<number> => {
  const sockets = await Promise.all(Array.from({ length: connections }, () => open(port)))
  let sent = 0
  const next = (): Buffer | undefined => (sent < count ? make(sent++) : undefined)
  const before = cpuMicros(pid)
  await Promise.all(sockets.map((socket) => lane(socket, next)))
  return (cpuMicros(pid) - before) / count
}

export const median = (figures: ReadonlyArray<number>): number => {
  const sorted = [...figures].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 === 1 ? (sorted[middle] ?? 0) : ((sorted[middle - 1] ?? 0) + (sorted[middle] ?? 0)) / 2
}
