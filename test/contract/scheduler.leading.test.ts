/**
 * A scheduler that does not lead its log any more, or may not (D60): every endpoint that is declared, asked with what a
 * leader would take, is 503 `NOT_LEADER`, by callback or not, and whenever the lead was lost.
 */
import { request as httpRequest } from "node:http"
import { connect } from "node:net"
import { Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { create, registration } from "../../kit/data/registration.ts"
import { secret } from "../../kit/processes/Door.ts"
import { Leadership } from "../../src/ports/SharedLog.ts"
import { accessOf } from "../../src/protocol/access.ts"
import { SchedulerApi } from "../../src/protocol/SchedulerApi.ts"
import { FakeSsp } from "../scheduler/FakeSsp.ts"
import { inMemory, Node } from "../scheduler/node.ts"

let node: Node
let ssp: FakeSsp
/** Where a view is, by an SSP that is sent its events. */
let owner: FakeSsp
let leads = true

beforeAll(async () => {
  const leadership = Leadership.of({
    mayAnswer: () => leads,
    onSilenced: () => {},
    sspCalled: () => {},
    status: () => undefined
  })
  node = await Node.start({ stores: Layer.merge(inMemory, Layer.succeed(Leadership, leadership)) })
  owner = await (await FakeSsp.start("owner")).join(node)
  expect((await node.post("/view/register", registration("v", "SELECT * FROM t"))).status).toBe(200)
  ssp = await FakeSsp.start("a")
  await ssp.register(node, { tables: ["t"] })
})
afterAll(async () => {
  await node.close()
  await Promise.all([ssp, owner].map((each) => each.close()))
})

/** What each endpoint is asked, and what a leader answers. */
const asked: { readonly [route: string]: readonly [status: number, path: () => string, body?: () => unknown] } = {
  "GET /debug/view/:view_id": [200, () => "/debug/view/v"],
  "GET /feed": [200, () => `/feed?after=0&tables=t&registration=${ssp.registration}`],
  "GET /health": [200, () => "/health"],
  "GET /info": [200, () => "/info"],
  "GET /integrity": [200, () => "/integrity?table=t"],
  "GET /jobs": [200, () => "/jobs?table=job"],
  "GET /jobs/:job_id": [200, () => "/jobs/job:1"],
  "GET /livez": [200, () => "/livez"],
  "GET /metrics": [200, () => "/metrics"],
  "GET /overview": [200, () => "/overview"],
  "GET /progress": [200, () => "/progress"],
  "GET /readyz": [200, () => "/readyz"],
  "GET /replica": [404, () => "/replica"],
  "GET /view/:view_id": [200, () => "/view/v"],
  "GET /view/:view_id/stream": [200, () => "/view/v/stream"],
  "GET /views": [200, () => "/views"],
  "POST /ingest": [200, () => "/ingest", () => create("t:1")],
  "POST /job/dispatch": [
    200,
    () => "/job/dispatch",
    () => ({ job_id: "job:1", table: "job", payload: { path: "/x", body: {} } })
  ],
  "POST /job/result": [200, () => "/job/result", () => ({ job_id: "job:1", status: "completed" })],
  "POST /jobs/:job_id/cancel": [409, () => "/jobs/job:1/cancel"],
  "POST /jobs/:job_id/retry": [409, () => "/jobs/job:1/retry"],
  "POST /proxy/query": [200, () => "/proxy/query", () => ({ query: "SELECT * FROM t" })],
  "POST /proxy/signin": [200, () => "/proxy/signin"],
  "POST /proxy/use": [200, () => "/proxy/use"],
  "POST /query/register": [
    200,
    () => "/query/register",
    () => ({ query_id: "w", view_plan: { surql: "SELECT * FROM t", clientId: "me", ttl: "1h" } })
  ],
  "POST /ssp/applied": [
    200,
    () => "/ssp/applied",
    () => ({ ssp_id: "a", registration: ssp.registration, seq: ssp.snapshotSeq })
  ],
  "POST /ssp/heartbeat": [200, () => "/ssp/heartbeat", () => ({ ssp_id: "a", timestamp: 1, views: 0 })],
  "POST /ssp/register": [202, () => "/ssp/register", () => ({ ssp_id: "b", url: "http://127.0.0.1:1" })],
  "POST /stream": [200, () => "/stream", () => ({ views: [{ view: "v" }] })],
  "POST /stream/:stream_id": [404, () => "/stream/x", () => ({ add: [{ view: "v" }] })],
  "POST /view/free": [404, () => "/view/free", () => ({ id: "v" })],
  "POST /view/register": [200, () => "/view/register", () => registration("v", "SELECT * FROM t")],
  "POST /view/token": [200, () => "/view/token", () => ({ views: ["v"] })],
  "POST /view/token/revoke": [200, () => "/view/token/revoke", () => ({ subject: "me" })],
  "POST /view/touch": [200, () => "/view/touch", () => ({ views: ["v"] })],
  "POST /view/unregister": [200, () => "/view/unregister", () => ({ id: "w" })],
  "POST /ssp/deregister": [200, () => "/ssp/deregister", () => ({ ssp_id: "b" })]
}

const headers = { "content-type": "application/json", authorization: `Bearer ${secret}` }

interface Said {
  readonly status: number
  readonly text: string
}

/** The status, and the text of an answer that ends; of one that goes on nothing is read. */
const ask = (method: string, path: string, body: unknown): Promise<Said> =>
  new Promise((done, fail) => {
    const sent = httpRequest(`${node.url}${path}`, { method, headers }, (response) => {
      const { statusCode: status = 0 } = response
      if (status === 200) {
        done({ status, text: "" })
        return void sent.destroy()
      }
      let text = ""
      response.on("data", (piece) => (text += String(piece)))
      response.on("end", () => done({ status, text }))
    })
    sent.on("error", fail)
    sent.end(body === undefined ? undefined : JSON.stringify(body))
  })

/** The lead is lost once the request was let in, before its body comes. */
const askLate = (method: string, path: string, body: unknown): Promise<Said> =>
  new Promise((done, fail) => {
    const bytes = Buffer.from(JSON.stringify(body))
    const socket = connect(node.port, "127.0.0.1", () =>
      socket.write(
        `${method} ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\nauthorization: Bearer ${secret}\r\ncontent-length: ${bytes.length}\r\nexpect: 100-continue\r\n\r\n`
      )
    )
    let text = ""
    socket.on("data", (piece) => {
      text += String(piece)
      if (text === "HTTP/1.1 100 Continue\r\n\r\n") {
        text = ""
        leads = false
        return socket.write(bytes)
      }
      const status = Number(/^HTTP\/1.1 (\d+)/.exec(text)?.[1])
      if (status === 100) return fail(new Error(`it is answered before its body: ${text}`))
      if (status !== 200 && !text.includes("}")) return
      done({ status, text })
      socket.destroy()
    })
    socket.on("error", fail)
  })

const own = ["GET /livez", "GET /metrics", "GET /progress"]

describe("a scheduler that leads no more", () => {
  it("D60 the table below has every endpoint", () =>
    expect(Object.keys(asked).sort()).toEqual([...accessOf(SchedulerApi).keys()].sort()))

  for (const [route, [status, pathOf, bodyOf]] of Object.entries(asked)) {
    const [method = ""] = route.split(" ")
    const isOwn = own.includes(route)
    it(`D60 ${route} is ${isOwn ? "still answered" : "503 NOT_LEADER"}`, async () => {
      leads = false
      const refused = await ask(method, pathOf(), bodyOf?.())
      const wanted = isOwn ? [status, ""] : [503, expect.stringContaining("NOT_LEADER")]
      expect([refused.status, refused.text]).toEqual(wanted)
    })
    if (bodyOf !== undefined)
      it(`D60 ${route} is so when the lead is lost while its body comes`, async () => {
        leads = true
        const refused = await askLate(method, pathOf(), bodyOf())
        expect([refused.status, refused.text]).toEqual([503, expect.stringContaining("NOT_LEADER")])
      })
  }

  for (const [route, [status, pathOf, bodyOf]] of Object.entries(asked))
    it(`D60 ${route} is ${status} while it leads`, async () => {
      leads = true
      const answer = await ask(route.split(" ")[0]!, pathOf(), bodyOf?.())
      expect(answer.status, answer.text).toBe(status)
    })
})
