/**
 * Every setting that bounds something: what exceeds it, who refuses, and in which words.
 *
 * Add a row with every such setting: `limits.test.ts` fails for a numeric setting of either server that stands neither
 * here nor in {@link pace}, and tries each row on a built process for which all are set small at once. What no request
 * can show, or only at a cost, names the test that does.
 */

import { type Answer, client, request } from "../../kit/checks/http.ts"
import { create, registration } from "../../kit/data/registration.ts"
import { secret, until } from "../../kit/processes/Door.ts"
import { answered, clientOf, hold, unread } from "./serving.ts"

export type On = "ssp" | "scheduler"

/** A process that serves. */
export interface Served {
  readonly on: On
  readonly url: string
  readonly port: number
  readonly token: string | undefined
}

interface Named {
  readonly setting: string
  readonly on: ReadonlyArray<On>
}

/** A limit that a request meets. */
export interface Tried extends Named {
  /** What it is set to. */
  readonly small: number
  readonly status: number
  /** Undefined: what is left out is named in an answer that is none of an error. */
  readonly code: string | undefined
  /** Asks for more than it allows; the answer of the refusal. */
  readonly exceed: (at: Served) => Promise<Answer>
}

/** A limit that another test shows: a file, and the begin of the test's name. */
export interface Shown extends Named {
  readonly does: string
  readonly file: string
  readonly test: string
}

const both: ReadonlyArray<On> = ["ssp", "scheduler"]
const ssp: ReadonlyArray<On> = ["ssp"]
const scheduler: ReadonlyArray<On> = ["scheduler"]

const asking = ({ token, url }: Served) => client(url, token)

/** Clients have addresses of their own, so that what one of them may do is left to the others. */
const flood = "127.0.0.5"
const others = ["127.0.0.6", "127.0.0.7"]

const headers = ({ token }: Served): string =>
  `host: localhost\r\n${token === undefined ? "" : `authorization: Bearer ${token}\r\n`}`

const get = (at: Served, path: string): string => `GET ${path} HTTP/1.1\r\n${headers(at)}\r\n`

const post = (at: Served, path: string, body: unknown): string => {
  const text = JSON.stringify(body)
  return `POST ${path} HTTP/1.1\r\n${headers(at)}content-type: application/json\r\ncontent-length: ${text.length}\r\n\r\n${text}`
}

/** The first answer with this status to bytes that go out at once. */
const first = async (at: Served, status: number, bytes: string, from = flood): Promise<Answer> => {
  const sender = await clientOf(at.port, bytes, from)
  try {
    return await answered(sender, status)
  } finally {
    sender.destroy()
  }
}

/** So many connections of each address, and then what one that comes is told. */
const crowded = async (at: Served, count: number, from: ReadonlyArray<string>, asks: string): Promise<Answer> => {
  const held = (await Promise.all(from.map((address) => hold(at.port, count, address)))).flat()
  const late = await clientOf(at.port, get(at, "/info"), asks)
  try {
    return await answered(late, 503)
  } finally {
    for (const one of [late, ...held]) one.destroy()
  }
}

const rows = async (at: Served, count: number, record: unknown): Promise<void> => {
  for (let n = 0; n < count; n++) await asking(at).post("/ingest", create(`t:${n}`, record))
}

/** What a view of this query is answered, with records behind it. */
const viewed = async (at: Served, count: number, record: unknown, query: string): Promise<Answer> => {
  await rows(at, count, record)
  return asking(at).post("/view/register", registration("incantation:v", query, { format: "tree" }))
}

const queried = (at: Served, query: string): Promise<Answer> => asking(at).post("/proxy/query", { query })

/** More than a row may take, and less. */
const fewSteps = "array::range(0, 100).map(|$v| $v + 1)"
const manySteps = "array::range(0, 9000).map(|$v| $v + 1)"
const long = "string::repeat('x', 140000)"

export const tried: ReadonlyArray<Tried> = [
  {
    setting: "SVC_MAX_BODY_BYTES",
    on: both,
    small: 4096,
    status: 413,
    code: "PAYLOAD_TOO_LARGE",
    exceed: (at) => asking(at).post("/ingest", create("t:1", { text: "x".repeat(5000) }))
  },
  {
    setting: "SVC_MAX_BODY_BYTES_TOTAL",
    on: both,
    // One body of the largest size always fits, with an envelope of 64 KiB: tiny chunks, which count more, exceed it.
    small: 1024,
    status: 503,
    code: "OVERLOADED",
    exceed: async (at) => {
      const begun = `POST /ingest HTTP/1.1\r\n${headers(at)}transfer-encoding: chunked\r\n\r\n${"1\r\n \r\n".repeat(100)}`
      const held = await hold(at.port, 15, flood, begun)
      try {
        return await Promise.any(held.map((one) => answered(one, 503)))
      } finally {
        for (const one of held) one.destroy()
      }
    }
  },
  {
    setting: "SVC_MAX_CONNECTIONS_PER_ADDRESS",
    on: both,
    small: 20,
    status: 503,
    code: "OVERLOADED",
    exceed: (at) => crowded(at, 20, [flood], flood)
  },
  {
    setting: "SVC_MAX_CONNECTIONS",
    on: both,
    small: 60,
    status: 503,
    code: "OVERLOADED",
    exceed: (at) => crowded(at, 20, [flood, ...others], "127.0.0.8")
  },
  {
    setting: "SVC_REQUEST_TIMEOUT_SECS",
    on: both,
    small: 2,
    status: 408,
    code: "INVALID_REQUEST",
    exceed: (at) => first(at, 408, "GET /info HTTP/1.1\r\nhost: local")
  },
  {
    setting: "SVC_RATE_LIMIT",
    on: both,
    small: 150,
    status: 429,
    code: "RATE_LIMITED",
    // From an address of its own: what is sent next from another is not refused for it.
    exceed: (at) => first(at, 429, get(at, "/info").repeat(1500), "127.0.0.9")
  },
  {
    setting: "SVC_MAX_PENDING_CHANGES",
    on: both,
    small: 5,
    status: 503,
    code: "OVERLOADED",
    exceed: (at) => first(at, 503, post(at, "/ingest", create("t:1", { n: 1 })).repeat(100))
  },
  {
    setting: "SVC_MAX_VIEWS",
    on: ssp,
    small: 3,
    status: 503,
    code: "OVERLOADED",
    exceed: async (at) => {
      const view = (n: number) => registration(`incantation:v${n}`, `SELECT * FROM t WHERE n = ${n}`)
      for (let n = 1; n <= 3; n++) await asking(at).post("/view/register", view(n))
      return asking(at).post("/view/register", view(4))
    }
  },
  {
    setting: "SVC_STREAM_VIEWS",
    on: both,
    small: 2,
    status: 400,
    code: "INVALID_REQUEST",
    // A scheduler without a secret asks for that of its SSPs here.
    exceed: ({ url }) => client(url, secret).post("/stream", { views: [{ view: "a" }, { view: "b" }, { view: "c" }] })
  },
  {
    setting: "SVC_MAX_STREAMS",
    on: ssp,
    small: 2,
    status: 503,
    code: "OVERLOADED",
    exceed: async (at) => {
      await asking(at).post("/view/register", registration("incantation:v", "SELECT * FROM t"))
      const held = await hold(at.port, 2, flood, get(at, "/view/incantation:v/stream"))
      try {
        for (const one of held) await answered(one, 200)
        return await asking(at).get("/view/incantation:v/stream")
      } finally {
        for (const one of held) one.destroy()
      }
    }
  },
  {
    setting: "SVC_QUERY_ROW_STEPS",
    on: ssp,
    small: 4000,
    status: 200,
    code: undefined,
    exceed: (at) => viewed(at, 1, {}, `SELECT ${manySteps} AS w FROM t`)
  },
  {
    setting: "SVC_QUERY_ROW_STEPS",
    on: scheduler,
    small: 4000,
    status: 500,
    code: "QUERY_FAILED",
    exceed: async (at) => (await rows(at, 1, {}), queried(at, `SELECT ${manySteps} AS w FROM t`))
  },
  {
    setting: "SVC_QUERY_CHANGE_STEPS",
    on: ssp,
    small: 4000,
    status: 200,
    code: undefined,
    exceed: async (at) => {
      const query = "SELECT array::range(0, 100).map(|$v| $v + to.n) AS w FROM t"
      await viewed(at, 9, { to: "t:0" }, query)
      await rows(at, 1, { to: "t:0", n: 2 })
      return asking(at).get("/view/incantation:v")
    }
  },
  {
    setting: "SVC_QUERY_STEPS",
    on: ssp,
    small: 3000,
    status: 200,
    code: undefined,
    exceed: (at) => viewed(at, 5, {}, "SELECT array::repeat(array::group([n]), 1500) AS w FROM t GROUP ALL")
  },
  {
    setting: "SVC_QUERY_STEPS",
    on: scheduler,
    small: 10_000,
    status: 500,
    code: "QUERY_FAILED",
    exceed: (at) => queried(at, `SELECT VALUE ${fewSteps} FROM array::range(0, 100)`)
  },
  {
    setting: "SVC_QUERY_BYTES",
    on: ssp,
    small: 131_072,
    status: 200,
    code: undefined,
    exceed: (at) => viewed(at, 1, {}, `SELECT ${long} AS w FROM t`)
  },
  {
    setting: "SVC_QUERY_BYTES",
    on: scheduler,
    small: 131_072,
    status: 500,
    code: "QUERY_FAILED",
    exceed: (at) => queried(at, `RETURN ${long}`)
  },
  {
    setting: "SVC_VIEW_BYTES_TOTAL",
    on: ssp,
    small: 65_536,
    status: 503,
    code: "OVERLOADED",
    exceed: (at) => viewed(at, 3, { tags: Array.from({ length: 100 }, (_, n) => n) }, "SELECT tags FROM t SPLIT tags")
  },
  {
    setting: "SVC_QUERY_BYTES_TOTAL",
    on: scheduler,
    small: 131_072,
    status: 503,
    code: "OVERLOADED",
    exceed: async (at) => {
      const large = post(at, "/proxy/query", { query: "RETURN array::repeat(string::repeat('x', 500), 200)" })
      return until("a query is refused", async () => {
        // Each address may ask a hundred times at once; clients that read nothing are cut off after a while.
        const held = await Promise.all(
          Array.from({ length: 10 }, (_, n) => unread(at.port, large.repeat(100), `127.0.1.${n + 1}`))
        )
        try {
          for (let n = 0; n < 20; n++) {
            // A query that waits for longer than the small request time-out is cut off.
            const answer = await queried(at, "RETURN 1").catch(() => undefined)
            if (answer !== undefined && answer.status !== 200) return answer
          }
          return undefined
        } finally {
          for (const one of held) one.destroy()
        }
      })
    }
  },
  {
    setting: "SVC_QUERY_ROWS",
    on: scheduler,
    small: 3,
    status: 500,
    code: "QUERY_FAILED",
    exceed: async (at) => (await rows(at, 4, {}), queried(at, "SELECT * FROM t"))
  },
  {
    setting: "SVC_VIEW_RESULT_BYTES",
    on: ssp,
    small: 65_536,
    status: 400,
    code: "INVALID_QUERY",
    exceed: (at) => viewed(at, 30, { text: "x".repeat(3000) }, "SELECT * FROM t")
  }
]

export const shown: ReadonlyArray<Shown> = [
  {
    setting: "SVC_MAX_MEMORY",
    on: both,
    does: "503 OVERLOADED for what grows, with the figure, until a collection has made room",
    file: "test/live/memory.test.ts",
    test: "refuses what grows, takes what does not"
  },
  {
    setting: "SVC_DATABASE_WAIT_MS",
    on: ssp,
    does: "500 STORE_FAILED names it",
    file: "test/live/calls.test.ts",
    test: "D6 a registration does not wait for a database that is away"
  },
  {
    setting: "SVC_MAX_TURN_MS",
    on: both,
    does: "the process says what it evaluates and ends with exit code 5",
    file: "test/live/watchdog.test.ts",
    test: "ends the SSP with exit code 5 and names the view"
  },
  {
    setting: "SVC_SLOW_EVALUATION_MS",
    on: ssp,
    does: "what is evaluated is written down, and set aside when two processes ended in it",
    file: "test/live/watchdog.test.ts",
    test: "does not kill again"
  },
  {
    setting: "SVC_AUDIT_TURNED_PER_MINUTE",
    on: both,
    does: "lines beyond it are counted, and the count is a line",
    file: "test/contract/audit.test.ts",
    test: "D53 a flood of guesses writes no more lines than are allowed"
  },
  {
    setting: "SVC_ROW_ERRORS_PER_MINUTE",
    on: ssp,
    does: "lines beyond it are counted, and the count is a line",
    file: "test/ssp/rowErrors.test.ts",
    test: "D79 a view of which every row fails is a line for each kind of failure"
  },
  {
    setting: "SVC_STREAM_BUFFER",
    on: both,
    does: "a follower beyond it is told `end`, `behind`",
    file: "test/hostile/followers.test.ts",
    test: "D11 one beyond the buffer is told end, behind"
  },
  {
    setting: "SVC_MAX_PENDING_EDGES",
    on: ssp,
    does: "503 OVERLOADED while the database is away",
    file: "test/ssp/edges/writer.test.ts",
    test: "D21 while the database is away nothing is lost; when the queue is full changes are answered OVERLOADED"
  },
  {
    setting: "SVC_MAX_TOMBSTONES",
    on: ssp,
    does: "the longest deleted are forgotten, but for the highest version of all",
    file: "test/core/ivm/store/tombstones.test.ts",
    test: "D4 the graves hold each deleted record once"
  },
  {
    setting: "SVC_JOB_RESULT_BYTES",
    on: ssp,
    does: "a longer result is left out and says so",
    file: "test/core/job/result.test.ts",
    test: "D36 a result longer than the limit, in bytes, is left out and says so"
  },
  {
    setting: "SVC_JOB_MAX_RETRIES",
    on: ssp,
    does: "a job's own number counts up to it",
    file: "test/core/job/call.test.ts",
    test: "D38 max_retries is capped by the setting"
  },
  {
    setting: "SVC_SCHEDULER_JOB_RESULTS",
    on: scheduler,
    does: "the oldest make room",
    file: "test/scheduler/jobs.test.ts",
    test: "D36 results are there after a restart, as many as the setting says"
  },
  {
    setting: "SVC_SNAPSHOT_TIMEOUT_SECS",
    on: scheduler,
    does: "a snapshot that is not read in time breaks off, and holds nothing any more",
    file: "test/host/replicaSnapshots.test.ts",
    test: "D64 one at a time, none while a state is held for an SSP, and not for ever"
  },
  {
    setting: "SVC_SCHEDULER_MAX_BUFFER_PER_SSP",
    on: scheduler,
    does: "409 to each heartbeat of the SSP until it registers again",
    file: "test/scheduler/delivery.test.ts",
    test: "D26 more events than max_buffer_per_ssp: 409 to every heartbeat"
  }
]

/** Numeric settings that bound nothing of what others may take: how often, how long, how many at a time. */
export const pace: ReadonlySet<string> = new Set([
  "TTL_CLEANUP_INTERVAL_SECS",
  "SVC_VIEW_TOKEN_TTL",
  "SVC_LEASE_MS",
  "SVC_LOG_COPIES",
  "SVC_SNAPSHOT_INTERVAL_SECS",
  "SVC_LOG_REPLICAS",
  "HEARTBEAT_INTERVAL_MS",
  "SVC_STATE_DEBOUNCE_MS",
  "SVC_TABLE_GRACE_SECS",
  "SVC_JOB_RETRY_BASE_MS",
  "SVC_RECONCILE_INTERVAL_SECS",
  "SVC_DATABASE_LEASE_SECS",
  "SVC_CHANGES_PER_READ",
  "SVC_CHANGES_BEHIND_SECS",
  "SVC_SCHEMA_INTERVAL_MS",
  "SVC_INTEGRITY_QUIET_SECS",
  "SVC_SCHEDULER_HEARTBEAT_INTERVAL_MS",
  "SVC_SCHEDULER_HEARTBEAT_TIMEOUT_MS",
  "SVC_SCHEDULER_BOOTSTRAP_CHUNK_SIZE",
  "SVC_SCHEDULER_BOOTSTRAP_TIMEOUT_SECS",
  "SVC_SCHEDULER_INGEST_PORT",
  "SVC_SCHEDULER_SSP_POLL_INTERVAL_MS",
  "SVC_SCHEDULER_SSP_PROBE_INTERVAL_MS",
  "SVC_SCHEDULER_SNAPSHOT_UPDATE_INTERVAL_SECS",
  "SVC_SCHEDULER_INTEGRITY_INTERVAL_SECS",
  "SVC_SCHEDULER_DELIVERY_WAIT_MS"
])

/** Everything that the last row has left goes. */
export const cleared = async (at: Served): Promise<void> => {
  if (at.on === "ssp") await request(at.url, { method: "POST", path: "/reset", token: at.token, body: {} })
}
