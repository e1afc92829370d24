/**
 * `npm run bench -- --only streams`: what a follower, an open stream and a read cost, beside a bare `node:http` server
 * that writes the same prepared text, in the same run; `streams-scheduler` the same through a scheduler.
 *
 * CPU time and resident memory are read from the kernel, of the server processes alone. Both servers get the same
 * requests in turns, and what is judged is the median of the ratios within a round.
 */
import { readFileSync } from "node:fs"
import { registration } from "../../../kit/data/registration.ts"
import { secret, sleep, until } from "../../../kit/processes/Door.ts"
import { type Judged, load, median, requestBytes } from "../load.ts"
import { Followers } from "./followers.ts"
import { bare, type Form, post, type Server, spent, ssp, surql, take, throughScheduler, view } from "./servers.ts"

const followersOfOne = 1_000
const deltasPerRound = 20
const rounds = 7
const idleStreams = 4_000
const idleMs = 32_000
const reads = 6_000

const residentKiB = ({ pids }: Server): number =>
  pids.reduce((sum, pid) => sum + Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]), 0)

/** CPU microseconds per delivered delta, with all followers reading. */
const perDelta = async (server: Server, followers: Followers): Promise<number> => {
  const micros = await spent(server, async () => {
    for (let n = 0; n < deltasPerRound; n++) {
      const expected = followers.deltas + followersOfOne
      await take(server, "/ingest", post(3, `Title ${performance.now()}`))
      await until("every follower has the delta", () => followers.deltas >= expected)
    }
  })
  return micros / (deltasPerRound * followersOfOne)
}

type Measure = (server: Server) => Promise<number>

const readOfTen = Buffer.from(
  `GET /view/${view}?format=tree HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${secret}\r\n\r\n`
)
const refresh = requestBytes("/view/register", registration(view, surql, { format: "tree" }))

const loading =
  (request: Buffer): Measure =>
  async (server) =>
    (await spent(server, () => load(server.port, server.pids[0]!, reads, () => request))) / reads

const opening =
  (form: Form): Measure =>
  async (server) => {
    let followers: Followers | undefined
    const micros = await spent(server, async () => {
      followers = await Followers.open(server.port, 500, form)
    })
    await followers?.close()
    return micros / 500
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
const idling = async (
  server: Server,
  form: Form
): Promise<{ readonly memory: ReadonlyArray<number>; readonly idle: ReadonlyArray<number> }> => {
  const before = residentKiB(server)
  const followers = await Followers.open(server.port, idleStreams, form)
  await sleep(3_000)
  const memory = (residentKiB(server) - before) / idleStreams
  const micros = await spent(server, () => sleep(idleMs))
  await followers.close()
  return { memory: [memory], idle: [micros / (idleMs * 10)] }
}

const line = (what: string, unit: string, [own, yard]: ReadonlyArray<ReadonlyArray<number>>, goal: number): Judged => {
  const ratio = median(own!.map((figure, round) => figure / yard![round]!))
  console.log(
    `| ${what} | ${median(own!).toFixed(2)} ${unit} | ${median(yard!).toFixed(2)} ${unit} | ${ratio.toFixed(2)} | at most ${goal} | ${ratio <= goal ? "met" : "missed"} |`
  )
  return { ratio, goal }
}

/** `times`: how many times as much as at an SSP it may cost. */
const streaming = async (own: Server, name: string, form: Form, times: number): Promise<ReadonlyArray<Judged>> => {
  const yard = await bare(own, form)
  const servers = [own, yard]
  try {
    console.log(
      `\n| ${form === "one" ? "GET /view/:id/stream" : "POST /stream, rows"} | ${name} | bare | ratio | goal | |\n|---|--:|--:|--:|--:|---|`
    )
    const idle = [await idling(own, form), await idling(yard, form)]
    const lines = [
      line(
        "memory per open stream",
        "KiB",
        idle.map(({ memory }) => memory),
        3 * times
      ),
      line(
        `${idleStreams} idle streams, of one core`,
        "%",
        idle.map((each) => each.idle),
        3 * times
      ),
      line("opening a stream, CPU", "us", await race(servers, opening(form)), 3 * times)
    ]
    const followers = await Promise.all(servers.map(({ port }) => Followers.open(port, followersOfOne, form)))
    const deltas = await race(servers, (server) => perDelta(server, followers[servers.indexOf(server)]!))
    await Promise.all(followers.map((each) => each.close()))
    return [...lines, line(`a delta to each of ${followersOfOne} followers, CPU`, "us", deltas, 2 * times)]
  } finally {
    await yard.close()
  }
}

const reading = async (own: Server, name: string, times: number): Promise<ReadonlyArray<Judged>> => {
  const yard = await bare(own, "one")
  try {
    console.log(`\n| reads | ${name} | bare | ratio | goal | |\n|---|--:|--:|--:|--:|---|`)
    return [
      line("GET /view of ten rows, CPU", "us", await race([own, yard], loading(readOfTen)), 3 * times),
      line("refresh of a registration, CPU", "us", await race([own, yard], loading(refresh)), 3 * times)
    ]
  } finally {
    await yard.close()
  }
}

/** One service, measured by each of these. */
const measured =
  (start: () => Promise<Server>, measures: ReadonlyArray<(own: Server) => Promise<ReadonlyArray<Judged>>>) =>
  async (): Promise<ReadonlyArray<Judged>> => {
    const own = await start()
    try {
      const lines: Array<Judged> = []
      for (const measure of measures) lines.push(...(await measure(own)))
      return lines
    } finally {
      await own.close()
    }
  }

const partsOf = (name: string, start: () => Promise<Server>, what: string, times: number) => ({
  [name]: measured(start, [
    (own) => streaming(own, what, "one", times),
    (own) => streaming(own, what, "several", times)
  ]),
  [`${name}-reads`]: measured(start, [(own) => reading(own, what, times)])
})

export const streams = {
  ...partsOf("streams", ssp, "the SSP", 1),
  ...partsOf("streams-scheduler", throughScheduler, "through the scheduler, both processes", 2)
}
