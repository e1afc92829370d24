/**
 * `npm run bench -- --only streams`: what a follower, an open stream and a read cost, beside a bare `node:http` server
 * that writes the same prepared text, in the same run.
 *
 * CPU time and resident memory are read from the kernel, of the server process alone; the followers are sockets of the
 * bench. Both servers get the same requests in turns, and what is judged is the median of the ratios within a round.
 */
import { spawn } from "node:child_process"
import { readFileSync } from "node:fs"
import { connect, type Socket } from "node:net"
import { join } from "node:path"
import ts from "typescript"
import { Door, freePort, secret, sleep, until } from "../../../test/kit/Door.ts"
import { EventStream } from "../../../test/kit/EventStream.ts"
import { request } from "../../../test/kit/http.ts"
import { registration } from "../../../test/kit/registration.ts"
import { root } from "../../../test/kit/source.ts"
import { cpuMicros, type Judged, load, median, requestBytes } from "../load.ts"

interface Server {
  readonly name: string
  readonly port: number
  readonly pid: number
  readonly close: () => Promise<void> | void
}

const followersOfOne = 1_000
const deltasPerRound = 20
const rounds = 7
const idleStreams = 4_000
const idleMs = 32_000
const reads = 6_000

const view = "ten"
const surql = "SELECT * FROM post WHERE author = user:1"
const post = (n: number, title: string): object => ({
  table: "post",
  op: "UPDATE",
  id: `post:${n}`,
  record: { author: "user:1", title, likes: n, tags: ["a", "b"], draft: false }
})

const most = { SVC_MAX_STREAMS: "20000", SVC_MAX_CONNECTIONS: "20000", SVC_MAX_CONNECTIONS_PER_ADDRESS: "20000" }

const ours = async (): Promise<Server> => {
  const door = await Door.start({ env: { SVC_LOG_LEVEL: "error", ...most } })
  const take = (path: string, body: unknown) =>
    request(door.url, { method: "POST", path, body, token: secret, keepAlive: false })
  for (let n = 0; n < 10; n++) await take("/ingest", post(n, `Post number ${n}`))
  await take("/view/register", registration(view, surql))
  return { name: "the SSP", port: door.port, pid: door.pid, close: () => door.close() }
}

/** The texts that the service sends, read from it. */
const textsOf = async (server: Server) => {
  const url = `http://127.0.0.1:${server.port}`
  const stream = await EventStream.open(url, `/view/${view}/stream`, secret)
  await request(url, { method: "POST", path: "/ingest", body: post(3, "A new title"), token: secret })
  const [snapshot, delta] = await stream.atLeast(2)
  stream.close()
  const answer = await request(url, { path: `/view/${view}?format=tree`, token: secret })
  const text = (event: typeof snapshot): string =>
    `event: ${event?.event}\nid: ${event?.id}\ndata: ${JSON.stringify(event?.data)}\n\n`
  return { snapshot: `: open\n\n${text(snapshot)}`, delta: text(delta), answer: answer.text }
}

const bare = async (texts: Awaited<ReturnType<typeof textsOf>>): Promise<Server> => {
  const port = await freePort()
  const code = ts.transpileModule(readFileSync(join(root, "scripts/bench/streams/bare.ts"), "utf8"), {
    compilerOptions: { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 }
  }).outputText
  const child = spawn(process.execPath, ["--input-type=module", "--eval", code], {
    env: { BARE: JSON.stringify({ ...texts, port, heartbeatMs: 15_000 }) },
    stdio: "inherit"
  })
  await until("the bare server listens", () =>
    request(`http://127.0.0.1:${port}`, { path: "/", keepAlive: false }).then(
      () => true,
      () => false
    )
  )
  return { name: "bare node:http", port, pid: child.pid ?? -1, close: () => void child.kill() }
}

/** Sockets that follow the view, and how many deltas have come over all of them. */
class Followers {
  readonly sockets: ReadonlyArray<Socket>
  deltas: number

  private constructor(sockets: ReadonlyArray<Socket>) {
    this.sockets = sockets
    this.deltas = 0
    for (const socket of sockets)
      socket.on("data", (chunk: Buffer) => {
        for (let at = chunk.indexOf("event: delta"); at >= 0; at = chunk.indexOf("event: delta", at + 12)) this.deltas++
      })
  }

  /** Opened fifty at a time; each waits for its snapshot. */
  static async open(port: number, count: number): Promise<Followers> {
    const ask = `GET /view/${view}/stream HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${secret}\r\n\r\n`
    const one = (): Promise<Socket> =>
      new Promise((done, failed) => {
        const socket = connect(port, "127.0.0.1", () => socket.write(ask))
        let text = ""
        const read = (chunk: Buffer): void => {
          text += chunk.toString("latin1")
          if (!/data: .*\n\n/.test(text)) return
          socket.off("data", read)
          done(socket)
        }
        socket.on("data", read)
        socket.once("error", failed)
      })
    const sockets: Array<Socket> = []
    while (sockets.length < count)
      sockets.push(...(await Promise.all(Array.from({ length: Math.min(50, count - sockets.length) }, one))))
    return new Followers(sockets)
  }

  async close(): Promise<void> {
    await Promise.all(
      this.sockets.map((socket) => new Promise<void>((done) => void socket.once("close", () => done()).destroy()))
    )
    await sleep(300)
  }
}

const residentKiB = (pid: number): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1])

/** CPU microseconds per delivered delta, with all followers reading. */
const perDelta = async (server: Server, followers: Followers): Promise<number> => {
  const before = cpuMicros(server.pid)
  for (let n = 0; n < deltasPerRound; n++) {
    const expected = followers.deltas + followersOfOne
    await request(`http://127.0.0.1:${server.port}`, {
      method: "POST",
      path: "/ingest",
      body: post(3, `Title ${performance.now()}`),
      token: secret
    })
    await until("every follower has the delta", () => followers.deltas >= expected)
  }
  return (cpuMicros(server.pid) - before) / (deltasPerRound * followersOfOne)
}

type Measure = (server: Server) => Promise<number>

const getBytes = (path: string): Buffer =>
  Buffer.from(`GET ${path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${secret}\r\n\r\n`)
const readOfTen = getBytes(`/view/${view}?format=tree`)
const refresh = requestBytes("/view/register", registration(view, surql, { format: "tree" }))

const reading: Measure = ({ pid, port }) => load(port, pid, reads, () => readOfTen)
const refreshing: Measure = ({ pid, port }) => load(port, pid, reads, () => refresh)
const opening: Measure = async ({ pid, port }) => {
  const before = cpuMicros(pid)
  const followers = await Followers.open(port, 500)
  const spent = cpuMicros(pid) - before
  await followers.close()
  return spent / 500
}

/** One of each before the first that counts. */
const race = async (servers: ReadonlyArray<Server>, measure: Measure): Promise<ReadonlyArray<Array<number>>> => {
  const figures = servers.map((): Array<number> => [])
  for (let round = -2; round < rounds; round++)
    for (const [i, server] of servers.entries()) {
      const figure = await measure(server)
      if (round >= 0) figures[i]!.push(figure)
    }
  return figures
}

/** What open streams take: KiB of memory each, and the share of a core while nothing happens. */
const idling = async ({ pid, port }: Server): Promise<{ readonly memory: number; readonly idle: number }> => {
  const before = residentKiB(pid)
  const followers = await Followers.open(port, idleStreams)
  await sleep(3_000)
  const memory = (residentKiB(pid) - before) / idleStreams
  const spent = cpuMicros(pid)
  await sleep(idleMs)
  const idle = (cpuMicros(pid) - spent) / (idleMs * 10)
  await followers.close()
  return { memory, idle }
}

const line = (what: string, unit: string, [own, yard]: ReadonlyArray<Array<number>>, goal: number): Judged => {
  const ratio = median(own!.map((figure, round) => figure / yard![round]!))
  console.log(
    `| ${what} | ${median(own!).toFixed(2)} ${unit} | ${median(yard!).toFixed(2)} ${unit} | ${ratio.toFixed(2)} | at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`
  )
  return { ratio, goal }
}

export const streams = async (): Promise<ReadonlyArray<Judged>> => {
  const own = await ours()
  const yard = await bare(await textsOf(own))
  const servers = [own, yard]
  try {
    console.log("| | the SSP | bare | ratio | goal | |\n|---|--:|--:|--:|--:|---|")
    const idle = [await idling(own), await idling(yard)]
    const lines = [
      line(
        "memory per open stream",
        "KiB",
        idle.map(({ memory }) => [memory]),
        3
      ),
      line(
        `${idleStreams} idle streams, of one core`,
        "%",
        idle.map((each) => [each.idle]),
        3
      ),
      line("opening a stream, CPU", "us", await race(servers, opening), 3)
    ]
    const followers = [await Followers.open(own.port, followersOfOne), await Followers.open(yard.port, followersOfOne)]
    lines.push(
      line(
        `a delta to each of ${followersOfOne} followers, CPU`,
        "us",
        await race(servers, (server) => perDelta(server, followers[servers.indexOf(server)]!)),
        2
      )
    )
    await Promise.all(followers.map((each) => each.close()))
    return [
      ...lines,
      line("GET /view of ten rows, CPU", "us", await race(servers, reading), 3),
      line("refresh of a registration, CPU", "us", await race(servers, refreshing), 3)
    ]
  } finally {
    await Promise.all(servers.map((server) => server.close()))
  }
}
