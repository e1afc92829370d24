/**
 * How long a change takes to a client when many follow: 1,000 streams on one view that changes once a second, 4,000 on
 * views of their own of which 200 a second change.
 *
 * The clock of the bench is in the record, so an arrival is compared with its own change. Server, clients and load share
 * the machine.
 */

import { client } from "../../../kit/checks/http.ts"
import { registration } from "../../../kit/data/registration.ts"
import { secret, sleep } from "../../../kit/processes/Door.ts"
import type { Judged } from "../load.ts"
import { Followers } from "./followers.ts"
import { type Server, spent, ssp, urlOf } from "./servers.ts"

const many = 4_000
const perSecond = 200
const followers = 1_000
const seconds = 30
const goalMs = 100

const change = (n: number): object => ({
  table: "seat",
  op: "UPDATE",
  id: `seat:${n}`,
  record: { n, sentAt: performance.now(), title: `Seat number ${n}` }
})

const sentAt = /"sentAt":([\d.]+)/g

/** Milliseconds from change to arrival, of all deltas that come from now on. */
const arrivalsOf = ({ sockets }: Followers): Array<number> => {
  const arrivals: Array<number> = []
  for (const socket of sockets)
    socket.on("data", (chunk: Buffer) => {
      const now = performance.now()
      for (const [, at] of chunk.toString("latin1").matchAll(sentAt)) arrivals.push(now - Number(at))
    })
  return arrivals
}

const at = (figures: ReadonlyArray<number>, share: number): number =>
  figures.toSorted((a, b) => a - b)[Math.floor(figures.length * share)] ?? Number.NaN

const run = async (server: Server): Promise<Judged> => {
  const { post } = client(urlOf(server), secret)
  for (let n = 0; n <= many; n += 500)
    await post(
      "/ingest",
      Array.from({ length: 500 }, (_, k) => change(n + k))
    )
  for (let n = 0; n <= many; n++) await post("/view/register", registration(`seat-${n}`, `SELECT * FROM seat:${n}`))
  const crowd = await Followers.open(server.port, followers, "several", () => "seat-0")
  const alone = await Followers.open(server.port, many, "several", (n) => `seat-${n + 1}`)
  const [ofCrowd, ofAlone] = [arrivalsOf(crowd), arrivalsOf(alone)]
  let sent = 0
  const begun = performance.now()
  const micros = await spent(server, async () => {
    while (performance.now() - begun < seconds * 1000) {
      for (; sent < ((performance.now() - begun) / 1000) * perSecond; sent++) {
        void post("/ingest", change(1 + ((sent * 7919) % many)))
        if (sent % perSecond === 0) void post("/ingest", change(0))
      }
      await sleep(2)
    }
    await sleep(1_000)
  })
  const all = [...ofCrowd, ...ofAlone]
  const p95 = at(all, 0.95)
  console.log(
    `| ${followers + many} streams, ${perSecond} changes/s to one each and 1/s to ${followers}: change to arrival | p50 ${at(all, 0.5).toFixed(1)} ms, p95 ${p95.toFixed(1)} ms, p99 ${at(all, 0.99).toFixed(1)} ms; of the crowd p95 ${at(ofCrowd, 0.95).toFixed(1)} ms | ${ofAlone.length} of ${sent} and ${ofCrowd.length} arrived | ${(micros / 1e4 / (seconds + 1)).toFixed(0)} % of a core | p95 at most ${goalMs} ms | ${p95 <= goalMs ? "met" : "missed"} |`
  )
  await Promise.all([crowd.close(), alone.close()])
  return { ratio: p95, goal: goalMs }
}

export const arrival = async (): Promise<ReadonlyArray<Judged>> => {
  const server = await ssp()
  try {
    return [await run(server)]
  } finally {
    await server.close()
  }
}
