/**
 * Reads and streams of views, by a bare target and by one with a query that means nothing: both write the same bytes.
 */
import { request as node } from "node:http"
import { createGunzip } from "node:zlib"
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest"
import { send } from "../../kit/checks/contract.ts"
import { request } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { Door, secret, until } from "../../kit/processes/Door.ts"
import { ProcessCluster, usualTimes } from "../../kit/processes/processCluster.ts"

let door: Door
beforeAll(async () => {
  door = await Door.start({ env: { SVC_CORS_ORIGINS: "https://app.example" } })
  for (let n = 0; n < 30; n++) await ingest(`item:${n}`, n)
  for (const [id, surql] of [
    ["all", "SELECT * FROM item"],
    ["failing", "SELECT id, 1 / n AS part, math::sqrt(label) AS bad FROM item"],
    ["ordered", "SELECT id, n FROM item ORDER BY n DESC LIMIT 5"],
    ["odd/ä ✓", "SELECT VALUE label FROM item"],
    ["one", "SELECT count() FROM item GROUP ALL"]
  ] as const)
    expect((await send(door, { ask: "POST /view/register", body: registration(id, surql) })).status).toBe(200)
})
afterAll(() => door.close())

const ingest = async (id: string, n: number): Promise<void> => {
  const body = create(id, { n, label: `${"ä".repeat(n)} "quoted"`, at: "2024-01-01T00:00:00Z" })
  expect((await send(door, { ask: "POST /ingest", body })).status).toBe(200)
}

interface Read {
  readonly status: number | undefined
  readonly headers: { readonly [name: string]: unknown }
  text: string
  readonly close: () => void
}

/** What is there of an answer, growing where it goes on. */
const open = (path: string, headers: { readonly [name: string]: string } = {}): Promise<Read> =>
  new Promise((done, failed) => {
    const sent = node(new URL(path, door.url), {
      agent: false,
      headers: { authorization: `Bearer ${secret}`, ...headers }
    })
    sent.on("response", (response) => {
      const { connection: _, date: __, "keep-alive": ___, "transfer-encoding": ____, ...rest } = response.headers
      const read: Read = { status: response.statusCode, headers: rest, text: "", close: () => sent.destroy() }
      const body = rest["content-encoding"] === "gzip" ? response.pipe(createGunzip()) : response
      body.setEncoding("utf8").on("data", (text: string) => void (read.text += text))
      response.on("error", () => undefined)
      const isOpen = String(rest["content-type"]).startsWith("text/event-stream")
      if (isOpen) done(read)
      else body.on("end", () => done(read))
    })
    sent.on("error", failed)
    sent.end()
  })

const ids = ["all", "failing", "ordered", "odd/ä ✓", "one"].map(encodeURIComponent)
const plain = ({ headers, status, text }: Read): unknown => ({ headers, status, text })

test("D8 results are the same with a query that means nothing, headers and bytes", async () => {
  for (const id of [...ids, "nothing", "%E0%A4%A", "all/more"])
    for (const query of ["", "?format=flat", "?format=tree", "?format=streaming", "?format=other"]) {
      const [bare, queried] = [
        await open(`/view/${id}${query}`),
        await open(`/view/${id}${query}${query === "" ? "?" : "&"}_=1`)
      ]
      expect([id, query, plain(bare)]).toEqual([id, query, plain(queried)])
    }
  const both = (headers: { readonly [name: string]: string }): Promise<ReadonlyArray<Read>> =>
    Promise.all(["", "?_=1"].map((query) => open(`/view/all${query}`, headers)))
  const [bare, queried] = await both({ authorization: "Bearer wrong" })
  expect([bare!.status, plain(bare!)]).toEqual([401, plain(queried!)])
  const [read, asDeclared] = await both({ origin: "https://app.example" })
  expect(read!.headers["access-control-allow-origin"]).toBe("https://app.example")
  expect(plain(read!)).toEqual(plain(asDeclared!))
})

test("D8 a result that the reader has is 304 with either target, until it changes; one with errors has no tag", async () => {
  const tags: Array<string> = []
  for (const [path, marked] of [
    ["/view/all", "/view/all?_=1"],
    ["/view/all?format=tree", "/view/all?format=tree&_=1"]
  ] as const) {
    const { headers, text } = await open(path)
    expect([headers["cache-control"], text.length > 100]).toEqual(["private, no-cache", true])
    const etag = String(headers["etag"])
    expect(etag).toMatch(/^"\d+-[0-9a-f]{16}-(?:flat|tree)"$/)
    tags.push(etag)
    for (const given of [etag, `W/${etag}`, `"other", ${etag}`, "*"])
      for (const asked of [path, marked]) {
        const { status, text: body, ...read } = await open(asked, { "if-none-match": given })
        expect([given, asked, status, body, read.headers["etag"]]).toEqual([given, asked, 304, "", etag])
      }
    for (const given of ['"other"', etag.slice(1), ""])
      expect((await open(path, { "if-none-match": given })).status).toBe(200)
  }
  expect(new Set(tags).size).toBe(2)
  await ingest("item:29", 1_000)
  for (const asked of ["/view/all", "/view/all?_=1"]) {
    const moved = await open(asked, { "if-none-match": tags.join(", ") })
    expect([moved.status, moved.text.includes("item:29"), moved.headers["etag"] === tags[0]]).toEqual([
      200,
      true,
      false
    ])
    const failing = await open(asked.replace("all", "failing"), { "if-none-match": "*" })
    expect([failing.status, failing.headers["etag"], failing.text.includes('"errors"')]).toEqual([200, undefined, true])
  }
  const closed = await open("/view/all", { "if-none-match": "*", authorization: "Bearer wrong" })
  expect(closed.status).toBe(401)
})

test("D8 results are gzip for clients that take it, the same with either target, from 1 KiB on and with a weak tag", async () => {
  const origin = "https://app.example"
  for (const asked of ["/view/all?format=tree", "/view/all?format=tree&_=1"]) {
    const whole = await open(asked, { origin })
    expect([whole.headers["content-encoding"], whole.headers["vary"]]).toEqual([undefined, "accept-encoding, Origin"])
    for (const accept of ["gzip", "br;q=1.0, gzip;q=0.8", "*", "deflate, GZIP "]) {
      const { headers, status, text } = await open(asked, { origin, "accept-encoding": accept })
      const { "content-length": _, ...same } = whole.headers
      expect([accept, status, headers]).toEqual([
        accept,
        200,
        { ...same, etag: `W/${whole.headers["etag"]}`, "content-encoding": "gzip" }
      ])
      expect(text).toBe(whole.text)
      const again = await open(asked, { "if-none-match": String(headers["etag"]), "accept-encoding": accept })
      expect([again.status, again.text]).toEqual([304, ""])
    }
    for (const accept of ["br", "gzip;q=0", "*;q=0", "gzip; q=0.0, br", "", "gzipped"]) {
      const { headers, text } = await open(asked, { origin, "accept-encoding": accept })
      expect([accept, headers, text]).toEqual([accept, whole.headers, whole.text])
    }
    const [short, refused] = [
      await open(asked.replace("all", "one"), { origin, "accept-encoding": "gzip" }),
      await open(asked, { "accept-encoding": "gzip", authorization: "Bearer wrong" })
    ]
    expect([short.status, short.headers["content-encoding"], short.headers["vary"]]).toEqual([
      200,
      undefined,
      "accept-encoding, Origin"
    ])
    expect([refused.status, refused.headers["content-encoding"]]).toEqual([401, undefined])
  }
  const stream = await open("/view/all/stream", { "accept-encoding": "gzip" })
  expect(stream.headers["content-encoding"]).toBeUndefined()
  stream.close()
})

test("D11 streams are the same with a query that means nothing, headers and bytes, from the snapshot and from an event on", async () => {
  const of = (id: string, query: string, from?: string): Promise<Read> =>
    open(`/view/${id}/stream${query}`, {
      origin: "https://app.example",
      ...(from === undefined ? {} : { "last-event-id": from })
    })
  const pairs = await Promise.all(
    ids.flatMap((id) =>
      ["flat", "tree", "rows"].map(async (format) => [
        await of(id, `?format=${format}`),
        await of(id, `?format=${format}&_=1`)
      ])
    )
  )
  const marks = (text: string): ReadonlyArray<string> => [...text.matchAll(/^id: (.*)$/gm)].map(([, id]) => id!)
  await until("the snapshots", () => pairs.flat().every(({ text }) => text.includes("event: snapshot")))
  const first = marks(pairs[0]![0]!.text)[0]!
  for (let n = 0; n < 20; n++) await ingest(`item:${n % 7}`, 100 + n)
  const now = await Promise.all(
    ids.map(
      async (id) => (JSON.parse((await open(`/view/${id}`)).text) as { content_generation: number }).content_generation
    )
  )
  const stands = ({ text }: Read, generation: number): boolean =>
    marks(text).at(-1)?.endsWith(`.${generation}`) === true && text.endsWith("\n\n")
  await until("all are at the last change", () =>
    pairs.every((pair, i) => pair.every((read) => stands(read!, now[Math.floor(i / 3)]!)))
  )
  for (const [bare, queried] of pairs) expect(plain(bare!)).toEqual(plain(queried!))
  const resumed = [await of("all", "", first), await of("all", "?_=1", first)]
  const last = marks(pairs[0]![0]!.text).at(-1)!
  await until("both have resumed", () => resumed.every(({ text }) => marks(text).at(-1) === last))
  expect(plain(resumed[0]!)).toEqual(plain(resumed[1]!))
  expect(resumed[0]!.text).not.toContain("event: snapshot")
  for (const read of [...pairs.flat(), ...resumed]) read.close()
})

test("D8 a scheduler hands the tag of a result on, and 304 for it, and compresses what it hands on", async () => {
  // An answer of `/ingest` means here that the SSP has applied it, however busy the machine is: one that is silent for
  // longer than the short times of other tests would be suspected, and not be waited for.
  const cluster = await ProcessCluster.start(
    1,
    { ...usualTimes.scheduler, SVC_SCHEDULER_DELIVERY_WAIT_MS: "60000" },
    () => usualTimes.ssp
  )
  onTestFinished(() => cluster.close())
  const body = registration("all", "SELECT * FROM item")
  expect((await cluster.scheduler.ask({ method: "POST", path: "/view/register", body }, 20_000))?.status).toBe(200)
  const read = (etag?: string) =>
    cluster.scheduler.ask({
      path: "/view/all",
      ...(etag === undefined ? {} : { headers: { "if-none-match": etag } })
    })
  const first = await until("the view", async () => {
    const answer = await read()
    return answer?.status === 200 ? answer : undefined
  })
  const etag = String(first.headers["etag"])
  const again = await read(etag)
  expect([again?.status, again?.text, again?.headers["etag"]]).toEqual([304, "", etag])
  expect((await read('"other"'))?.status).toBe(200)
  // In many pieces, each way.
  const text = Array.from({ length: 400_000 }, (_, n) => (n * 7919) % 10_007).join(" ")
  for (const [index, id] of ["item:1", "item:2"].entries()) {
    const taken = await cluster.scheduler.ask({ method: "POST", path: "/ingest", body: create(id, { text }) }, 60_000)
    expect(taken?.json).toEqual({ seq: index + 1, delivered: 1 })
  }
  const fetched = (accept: string) =>
    fetch(`${cluster.scheduler.url}/view/all?format=tree`, {
      headers: { authorization: `Bearer ${secret}`, "accept-encoding": accept }
    })
  const [whole, compressed] = await Promise.all([fetched("identity"), fetched("gzip")])
  const result = await whole.text()
  expect([result.length > 3_000_000, whole.headers.get("content-encoding")]).toEqual([true, null])
  expect(compressed.headers.get("content-encoding")).toBe("gzip")
  expect((await compressed.text()) === result).toBe(true)
  const url = cluster.ssps[0]!.url
  const left = new AbortController()
  const asked = { signal: left.signal, headers: { authorization: `Bearer ${secret}`, "accept-encoding": "gzip" } }
  await fetch(`${url}/view/all?format=tree`, asked).then(() => left.abort())
  expect((await request(url, { path: "/health" })).status).toBe(200)
})
