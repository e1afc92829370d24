/**
 * Two schedulers over one log in PostgreSQL, as processes: the second stands by, hands requests on, and leads when the
 * first is killed, stands still or is told to stop.
 */
import { request } from "node:http"
import { isDeepStrictEqual } from "node:util"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { EventStream, type StreamEvent } from "../../kit/checks/EventStream.ts"
import { registration } from "../../kit/data/registration.ts"
import { Callers } from "../../kit/processes/callers.ts"
import { Collector } from "../../kit/processes/collector.ts"
import { secret, sleep, until } from "../../kit/processes/Door.ts"
import * as Postgres from "../../kit/processes/postgres.ts"
import type { Process } from "../../kit/processes/processCluster.ts"
import { StandbyCluster } from "../../kit/processes/standbyCluster.ts"
import { TcpProxy } from "../../kit/processes/tcpProxy.ts"

const missing = Postgres.isReachable ? "" : " (skipped: no PostgreSQL at 127.0.0.1:5432; SVC_TEST_POSTGRES names one)"

let cluster: StandbyCluster
let collector: Collector
let n = 0

const write = (at: Process, ms = 20_000) =>
  at.ask(
    { method: "POST", path: "/ingest", body: { table: "item", op: "UPDATE", id: "item:1", record: { n: ++n } } },
    ms
  )

/**
 * A write that has begun when the server has taken its head, and whose body ends when it is told to; undefined: it is
 * not answered.
 */
const slow = (at: Process, change: object) => {
  const body = JSON.stringify(change)
  const headers = {
    "content-type": "application/json",
    "content-length": body.length,
    expect: "100-continue",
    authorization: `Bearer ${secret}`
  }
  const outgoing = request(`${at.url}/ingest`, { method: "POST", headers, agent: false })
  const status = new Promise<number | undefined>((done) => {
    outgoing.on("response", ({ statusCode }) => done(statusCode))
    outgoing.on("error", () => done(undefined))
  })
  const begun = new Promise<void>((done) => void outgoing.once("continue", done))
  outgoing.write(body.slice(0, 5))
  return { begun, status, end: () => void outgoing.end(body.slice(5)) }
}

/** Its position in the log. */
const written = (at: Process): Promise<number> =>
  until("a write is taken", async () => {
    const answer = await write(at)
    if (answer !== undefined && answer.status !== 200)
      expect([answer.status, answer.json], answer.text).toMatchObject([
        503,
        { code: expect.stringMatching(/NOT_LEADER|OVERLOADED/) }
      ])
    return answer?.status === 200 ? (answer.json as { readonly seq: number }).seq : undefined
  })

/** What the cluster has of the record, asked anywhere. */
const record = async (at: Process) =>
  (await at.ask({ method: "POST", path: "/proxy/query", body: { query: "SELECT VALUE n FROM item" } }, 20_000))?.json

const ssp = (): Process => cluster.ssps[0]!

const registered = async (at: Process, id: string, surql: string): Promise<void> => {
  const body = registration(id, surql, { format: "tree" })
  const answer = await at.ask({ method: "POST", path: "/view/register", body }, 20_000)
  expect(answer?.status, answer?.text).toBe(200)
}

/** What a view shows, asked at its SSP. */
const shown = async (view: string): Promise<unknown> =>
  ((await ssp().ask({ path: `/view/${view}` }))?.json as { readonly result_data: unknown } | undefined)?.result_data

const follows = (wanted: number): Promise<unknown> =>
  until("the view follows", async () => isDeepStrictEqual(await shown("n"), [{ id: "item:1", n: wanted }]))

/** The leader has heard that the SSP has applied all of the log. */
const hasApplied = async (leader: Process): Promise<boolean> => {
  const told = (await leader.ask({ path: "/overview" }))?.json as {
    readonly seq: number
    readonly ssps: ReadonlyArray<{ readonly acked: number }>
  }
  return told.ssps[0]?.acked === told.seq
}

/** Starts a scheduler that has ended; another one leads. */
const startsAgain = async (scheduler: Process): Promise<void> => {
  await scheduler.start()
  await until("it stands by", () => cluster.standsBy(scheduler))
}

const others = (leader: Process): Process => cluster.schedulers.find((each) => each !== leader)!

describe.skipIf(!Postgres.isReachable)(`schedulers over one log${missing}`, () => {
  beforeAll(async () => {
    collector = await Collector.start()
    const sending = (name: string) => ({
      env: {
        OTEL_EXPORTER_OTLP_METRICS_ENDPOINT: `${collector.url}/v1/metrics`,
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${collector.url}/v1/traces`,
        OTEL_BSP_SCHEDULE_DELAY: "50",
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_METRIC_EXPORT_INTERVAL: "500",
        OTEL_SERVICE_NAME: name
      }
    })
    const places = [sending("scheduler-1"), sending("scheduler-2")]
    // The SSP knows one scheduler only, and is to be a member still when that one has been started again.
    const env = { SVC_LEASE_MS: "5000", SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS: "120000" }
    cluster = await StandbyCluster.start(2, 1, env, { idleSsps: 1, places })
  }, 120_000)
  afterAll(async () => {
    await cluster?.close()
    await collector?.close()
  })

  it("D34 a scheduler that stands by sends its figures to the collector, as the leader does", async () => {
    const leader = await cluster.leader()
    // What the last figures of a process say that it is: the attributes of the point that is 1.
    const roleOf = ({ name }: Process): string => {
      const metric = collector.metrics.get(`${name} svc_scheduler_role`) as
        | { readonly gauge: { readonly dataPoints: ReadonlyArray<{ readonly [field: string]: unknown }> } }
        | undefined
      const point = metric?.gauge.dataPoints.find(({ asDouble, asInt }) => Number(asDouble ?? asInt) === 1)
      return JSON.stringify(point?.["attributes"] ?? "")
    }
    await until(
      "both say what they are",
      () => roleOf(leader).includes('"leader"') && roleOf(others(leader)).includes('"follower"')
    )
  })

  it("D60 a scheduler that stands by hands on what the leader answers, and follows with its own replica", async () => {
    const leader = await cluster.leader()
    const standby = others(leader)
    const seq = await written(standby)
    expect(await record(standby)).toEqual([n])
    expect((await standby.ask({ path: "/info" }))?.json).toMatchObject([{ entity: "scheduler", id: leader.name }])
    expect((await standby.ask({ path: "/nowhere" }))?.status).toBe(404)
    for (const [path, status] of [
      ["/health", 200],
      ["/readyz", 200],
      ["/livez", 200]
    ] as const)
      expect((await standby.ask({ path }))?.status, path).toBe(status)
    // A scheduler writes its own row beside the log only once it leads, or follows.
    await until("it has applied it, and both are in the list", async () => {
      const told = await cluster.told(standby)
      return told?.seq === seq && told.log.schedulers.length === 2
    })
    expect(await cluster.told(standby)).toMatchObject({
      state: "standby",
      log: { role: "follower", leader: leader.name, durability: "flushed", schedulers: [{}, {}] }
    })
    const text = (await standby.ask({ path: "/metrics?format=prometheus" }))?.text ?? ""
    expect(text).toContain('svc_scheduler_role{role="follower"} 1')
    expect(text).toContain('svc_scheduler_log_durability{durability="flushed"} 1')
  })

  it("D34 a request through one that stands by: the leader's span is a child of the caller's", async () => {
    const leader = await cluster.leader()
    const [traceId, caller] = ["a".repeat(32), "b".repeat(16)]
    const answer = await others(leader).ask({
      method: "POST",
      path: "/ingest",
      body: { table: "item", op: "UPDATE", id: "item:1", record: { n: ++n } },
      headers: { traceparent: `00-${traceId}-${caller}-01` }
    })
    expect(answer?.status).toBe(200)
    const ofTrace = () => collector.spans.filter((span) => span.traceId === traceId && span.name === "POST /ingest")
    await until("the span came", () => ofTrace().length > 0)
    expect(ofTrace().map(({ parentSpanId, service }) => [service, parentSpanId])).toEqual([[leader.name, caller]])
  })

  it("a request that was handed on once is not handed on again", async () => {
    const standby = others(await cluster.leader())
    const answer = await standby.ask({ path: "/info", headers: { "svc-forwarded-by": "another" } })
    expect([answer?.status, answer?.headers["retry-after"], answer?.json]).toMatchObject([
      503,
      "1",
      { code: "NOT_LEADER" }
    ])
  })

  it("D61 an SSP that knows only a scheduler that stands by follows through it, and loads tables through it", async () => {
    const leader = await cluster.leader()
    const standby = others(leader)
    await written(leader)
    cluster.known = [standby]
    await ssp().start()
    await cluster.settled()
    await registered(standby, "n", "SELECT id, n FROM item")
    await follows(n)
    await written(leader)
    await follows(n)
    // A table that joins is read through the same address.
    const other = { table: "other", op: "CREATE", id: "other:1", record: { n: 7 } }
    expect((await leader.ask({ method: "POST", path: "/ingest", body: other }))?.status).toBe(200)
    await registered(ssp(), "other", "SELECT id, n FROM other")
    expect(await shown("other")).toEqual([{ id: "other:1", n: 7 }])
    await until("the leader has heard that all of it is applied", () => hasApplied(leader))
  })

  it("D8 a result that is read through one that stands by is compressed once, for clients that take gzip", async () => {
    const leader = await cluster.leader()
    const body = { table: "long", op: "UPDATE", id: "long:1", record: { text: "a text ".repeat(400) } }
    expect((await leader.ask({ method: "POST", path: "/ingest", body }, 20_000))?.status).toBe(200)
    await registered(leader, "long", "SELECT * FROM long")
    const read = async ({ url }: Process, coding: string) => {
      const headers = { authorization: `Bearer ${secret}`, "accept-encoding": coding }
      const answer = await fetch(`${url}/view/long?format=tree`, { headers })
      return [answer.headers.get("content-encoding"), await answer.text()]
    }
    const [, text] = await read(leader, "identity")
    expect(text).toContain(body.record.text)
    expect(await read(others(leader), "identity")).toEqual([null, text])
    expect(await read(others(leader), "gzip")).toEqual(["gzip", text])
  })
  it("D60 kill -9 of the leader: the other one takes writes, with everything that was acknowledged", async () => {
    const leader = await cluster.leader()
    const heir = others(leader)
    await written(leader)
    const last = n
    await leader.kill()
    await until("the other leads", () => cluster.leads(heir))
    expect(await record(heir)).toEqual([last])
    await written(heir)
    await follows(n)
    await startsAgain(leader)
    await written(leader)
    await follows(n)
  })

  it("D60 SIGTERM: the log is handed over, and the process ends with 0", async () => {
    const leader = await cluster.leader()
    const heir = others(leader)
    expect(await leader.stop()).toBe(0)
    await written(heir)
    await startsAgain(leader)
    await follows(n)
  })

  it("D60 a scheduler that begins to lead refuses no connection and cuts none", async () => {
    const leader = await cluster.leader()
    const heir = others(leader)
    await written(leader)
    const change = { table: "item", op: "UPDATE", id: "item:1", record: { n: -2 } }
    const late = slow(heir, change)
    await late.begun
    const callers = new Callers(heir.url)
      .ask({ path: "/progress" })
      .ask({ path: "/info" })
      .ask({ method: "POST", path: "/ingest", body: { ...change, table: "asked", id: "asked:1" } })
    try {
      await until("all of them were answered", () => callers.answers.length > 20)
      expect(await leader.stop()).toBe(0)
      await until("the other leads", () => cluster.leads(heir))
      // A request that the node which stood by had begun to take is answered by it, and its client goes on.
      expect(await late.status).toBe(503)
      const before = callers.answers.length
      const since = () => callers.answers.slice(Math.max(before, callers.answers.length - 20))
      await until("the leader answers them", () => since().length === 20 && since().every((answer) => answer === "200"))
    } finally {
      late.end()
      await callers.end()
    }
    expect(callers.failures).toEqual([])
    expect(callers.kept.size).toBe(3)
    expect(["200", "503 NOT_LEADER", "503 OVERLOADED"]).toEqual(expect.arrayContaining([...new Set(callers.answers)]))
    await startsAgain(leader)
    await written(heir)
    await follows(n)
  })

  it("D60 superseded while it stops: what is under way is not answered 200, and it ends with 4", async () => {
    const leader = await cluster.leader()
    const heir = others(leader)
    await written(leader)
    const last = n
    const stops = (): number => leader.logs.split("requests and streams to finish").length
    const late = slow(leader, { table: "item", op: "UPDATE", id: "item:1", record: { n: -1 } })
    await late.begun
    const before = stops()
    leader.door?.signal("SIGTERM")
    await until("it waits for what is under way", () => stops() > before)
    // As another one's take-over, and at once.
    await Postgres.ask("UPDATE svc_log_head SET holder = NULL WHERE log = $1", [Postgres.nameOf(cluster.url)])
    await until("the other leads", () => cluster.leads(heir))
    late.end()
    expect([undefined, 503]).toContain(await late.status)
    expect((await leader.door?.exited)?.code).toBe(4)
    expect(leader.logs).toContain("SVC_LOG_URL): another scheduler has taken the log over")
    expect(await record(heir)).toEqual([last])
    await written(heir)
    await startsAgain(leader)
    await follows(n)
  })

  it("D60 a stream of a leader that is superseded ends with its process, and shows nothing that was not taken", async () => {
    const leader = await cluster.leader()
    const heir = others(leader)
    await written(leader)
    await follows(n)
    // Rows, since a delta of another format names only versions.
    const stream = await EventStream.open(leader.url, "/view/n/stream?format=rows", secret)
    const shows = (wanted: number) => (event: StreamEvent) => JSON.stringify(event.data).includes(`"n":${wanted}}`)
    await stream.find("what is there", shows(n))
    await Postgres.ask("UPDATE svc_log_head SET holder = NULL WHERE log = $1", [Postgres.nameOf(cluster.url)])
    await until("the other leads", () => cluster.leads(heir))
    expect([undefined, 503]).toContain((await write(leader))?.status)
    const refused = n
    await until("the stream ends", () => stream.ended)
    expect((await leader.door?.exited)?.code).toBe(4)
    // Clients come again after both: an end by which nothing is said of the view, or a connection that broke off.
    const ends = stream.events.filter(({ event }) => event === "end").map(({ data }) => data["reason"])
    expect([[], ["shutdown"]]).toContainEqual(ends)
    expect(stream.events.filter(shows(refused))).toEqual([])
    await startsAgain(leader)
    await written(heir)
    const next = await EventStream.open(heir.url, "/view/n/stream?format=rows", secret)
    await next.find("what was written since", shows(n))
    expect(next.events.filter(shows(refused))).toEqual([])
    next.close()
  })

  it("D60 a leader that stood still while another took over never answers 200, and ends with 4", async () => {
    const leader = await cluster.leader()
    const heir = others(leader)
    await written(leader)
    leader.door?.signal("SIGSTOP")
    const asked = write(leader, 60_000)
    await until("the other leads", () => cluster.leads(heir))
    await written(heir)
    const last = n
    leader.door?.signal("SIGCONT")
    expect([undefined, 503]).toContain((await asked)?.status)
    expect((await leader.door?.exited)?.code).toBe(4)
    expect(leader.logs).toContain("SVC_LOG_URL")
    expect(await record(heir)).toEqual([last])
    await leader.start()
  })

  it("D61 through all of that the SSP missed nothing, and loaded nothing again", async () => {
    await follows(n)
    expect(await shown("other")).toEqual([{ id: "other:1", n: 7 }])
    expect(ssp().logs.split("bootstrapped at position").length).toBe(2)
    expect(ssp().logs.split("table other joins").length).toBe(2)
  })
})

describe.skipIf(!Postgres.isReachable)(`a leader that PostgreSQL does not answer${missing}`, () => {
  let away: StandbyCluster
  let proxy: TcpProxy
  beforeAll(async () => {
    const { hostname, port } = new URL(Postgres.address)
    proxy = await TcpProxy.to(hostname, Number(port || 5432))
    const url = new URL(Postgres.freshLog())
    url.host = `127.0.0.1:${proxy.port}`
    away = await StandbyCluster.start(1, 1, { SVC_LOG_URL: url.href, SVC_LEASE_MS: "5000" })
    await away.settled()
  }, 120_000)
  afterAll(async () => {
    await away?.close()
    await proxy?.close()
  })

  it("D60 a write waits while it is away for less than the lease, and is in the log once", async () => {
    const [leader] = away.schedulers
    const seq = await written(leader!)
    proxy.hold()
    const asked = write(leader!, 60_000)
    await sleep(600)
    proxy.release()
    expect((await asked)?.json).toMatchObject({ seq: seq + 1 })
  })

  it("D60 without an answer in 0.8 of the lease a write is answered 503, and after all of it the process ends with 4", async () => {
    const [leader] = away.schedulers
    const seq = await written(leader!)
    const last = n
    proxy.hold()
    const answer = await write(leader!, 60_000)
    expect([answer?.status, answer?.headers["retry-after"], answer?.json]).toMatchObject([
      503,
      "1",
      { code: "NOT_LEADER" }
    ])
    expect((await leader!.door?.exited)?.code).toBe(4)
    proxy.release()
    await leader!.start()
    await away.leader()
    // What was answered 503 may be there, and is not there twice.
    const next = await written(leader!)
    expect([seq + 1, seq + 2]).toContain(next)
    expect([last + 2, last + 1]).toContain(((await record(leader!)) as ReadonlyArray<number>)[0])
    await away.settled()
    expect(away.ssps[0]!.logs.split("bootstrapped at position").length).toBe(2)
  })
})
