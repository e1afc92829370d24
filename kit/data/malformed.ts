/**
 * A generator of malformed requests: bytes that are no HTTP, heads that lie, bodies of the wrong shape, depth and size.
 *
 * Why bytes: most of these cannot be sent by any HTTP client. Each request says which kind it is, so that a test can
 * assert that every kind was drawn, and whether it was sent in full: only then is an answer owed.
 */
import { secret } from "../processes/Door.ts"
import type { Rng } from "./random.ts"

export interface Malformed {
  readonly kind: string
  readonly bytes: Buffer
}

const paths = ["/ingest", "/view/register", "/view/unregister", "/log"] as const
const ascii = "abc xyz019{}[]\":,\\/'`<>%$#@!~\t\u0000\u007f"
const odd = "é€😀\ud800\u2028⟨⟩ｱ"

const text = (random: Rng, length: number, letters = ascii + odd): string => {
  let made = ""
  for (let i = 0; i < length; i++) made += letters[random.below(letters.length)]
  return made
}

const bytes = (random: Rng, length: number): Buffer => Buffer.from(Array.from({ length }, () => random.below(256)))

/** Any JSON value, mostly of a type the place does not expect. */
const value = (random: Rng, depth = 0): unknown => {
  const kind = random.below(depth > 3 ? 8 : 11)
  const plain = [null, true, -1, 1e308, 0.1, "", text(random, random.below(12)), Number.MAX_SAFE_INTEGER]
  if (kind < 8) return plain[kind]
  if (kind === 8) return Array.from({ length: random.below(4) }, () => value(random, depth + 1))
  return Object.fromEntries(Array.from({ length: random.below(4) }, () => [key(random), value(random, depth + 1)]))
}

const key = (random: Rng): string =>
  random.pick([
    "__proto__",
    "constructor",
    "prototype",
    "toString",
    "hasOwnProperty",
    "id",
    "table",
    "op",
    "record",
    "surql",
    "",
    "a.b",
    "$x",
    text(random, 4)
  ])

const post = (path: string, body: Buffer | string, headers = ""): Buffer => {
  const raw = typeof body === "string" ? Buffer.from(body, "utf8") : body
  return Buffer.concat([
    Buffer.from(
      `POST ${path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ncontent-length: ${raw.length}\r\n${headers}\r\n`,
      "utf8"
    ),
    raw
  ])
}

const change = { table: "fuzz", op: "CREATE", id: "fuzz:1", record: {} }
const view = { id: "fuzz", surql: "SELECT * FROM fuzz", clientId: "c", ttl: "1s" }
const good: { readonly [path: string]: { readonly [name: string]: unknown } } = {
  "/ingest": change,
  "/view/register": view,
  "/view/unregister": { id: "x" },
  "/log": { message: "x", level: "trace" }
}

/** A good body with one required field made wrong. */
const spoiled = (random: Rng, path: string): string => {
  const body: Record<string, unknown> = { ...good[path] }
  const field = random.pick(Object.keys(body).filter((name) => name !== "level"))
  if (random.chance(0.2)) delete body[field]
  else body[field] = random.pick([null, 5, true, [], {}, [[]], { __proto__: 1 }, value(random)])
  return JSON.stringify(body)
}

const lines = (random: Rng): string =>
  random.pick([
    "content-length: 5\r\ncontent-length: 6",
    "content-length: -1",
    "content-length: 1e3",
    "content-length: 99999999999999999999",
    "transfer-encoding: chunked\r\ncontent-length: 4",
    "transfer-encoding: gibberish",
    "bad header without colon",
    " folded: x",
    "na me: x",
    "x: \u0001\u0002",
    ": no name",
    `x: ${"y".repeat(20_000)}`,
    "expect: the-impossible",
    "upgrade: websocket\r\nconnection: upgrade",
    "content-encoding: gzip",
    "host: a\r\nhost: b",
    "x\u0000y: z",
    `${"n".repeat(9000)}: 1`,
    "authorization: Bearer a\r\nauthorization: Bearer b",
    "connection: upgrade\r\nupgrade: h2c\r\nhttp2-settings: AAA"
  ])

const target = (random: Rng): string =>
  random.pick([
    "/view/%ff",
    "/view/%E0%A4%A",
    "/debug/view/%",
    "/view/%00/stream",
    "//",
    "/..%2f..%2fetc/passwd",
    "/view/../../x",
    `/view/${"a".repeat(9_000)}`,
    "/view/a?format=%ff",
    "/view/a?format[]=1",
    "*",
    "http://elsewhere/ingest",
    "/ingest%00",
    "/INGEST%2f",
    "/view/__proto__",
    "/view/constructor",
    "/debug/view/toString",
    "/view/%F0%9F%98%80/stream",
    "/?__proto__[x]=1",
    "/;/",
    "/\u0001",
    "ingest"
  ])

const nested = (random: Rng): string => {
  const depth = random.pick([65, 70, 200, 5_000, 50_000])
  const [before, after] = random.pick([
    ["[", "]"],
    ['{"a":', "}"],
    ['[{"__proto__":', "}]"]
  ] as const)
  const inner = `${before.repeat(depth)}1${random.chance(0.8) ? after.repeat(depth) : ""}`
  return random.chance(0.5) ? inner : `{"table":"fuzz","op":"CREATE","id":"fuzz:1","record":${inner}}`
}

const huge = (random: Rng): string => {
  const size = random.pick([100_000, 1_000_000, 2_200_000])
  return random.pick([
    () => JSON.stringify({ ...change, id: `fuzz${"x".repeat(size)}` }),
    () => JSON.stringify({ ...view, surql: `SELECT * FROM ${"(".repeat(size)}` }),
    () => JSON.stringify({ ...view, ttl: "9".repeat(size) }),
    () => JSON.stringify({ message: 5, data: "x".repeat(size) }),
    () => `"${"x".repeat(size)}`,
    () => "9".repeat(size),
    () => JSON.stringify({ ...view, surql: `SELECT * FROM t WHERE ${"NOT ".repeat(size / 10)}` }),
    () => JSON.stringify({ ...view, surql: `SELECT * FROM t WHERE a = ${"[".repeat(size / 10)}` })
  ])()
}

const queries = (random: Rng): string =>
  random.pick([
    "SELECT",
    "SELECT * FROM",
    "SELEC * FROM t",
    "SELECT * FROM t WHERE",
    "SELECT * FROM t WHERE a ==== 1",
    "SELECT * FROM t LIMIT x y",
    "SELECT * FROM t;;; DROP",
    "SELECT * FROM t WHERE a = 'open",
    "SELECT * FROM t WHERE $",
    "'; REMOVE TABLE t; --",
    "SELECT * FROM t WHERE a = 1e99999e",
    "SELECT * FROM t ORDER BY",
    "SELECT * FROM `t",
    "SELECT * FROM t WHERE a = d'nonsense'",
    "SELECT * FROM t WHERE a IN",
    text(random, random.below(40)),
    `SELECT * FROM t WHERE ${text(random, 10)}`,
    "\u0000"
  ])

const makers: { readonly [kind: string]: (random: Rng) => Buffer } = {
  "random bytes": (random) => bytes(random, 1 + random.below(300)),
  "a head of random bytes": (random) =>
    Buffer.concat([Buffer.from("POST /ingest HTTP/1.1\r\n"), bytes(random, 40), Buffer.from("\r\n\r\n")]),
  "a request line that is none": (random) =>
    Buffer.from(
      random.pick([
        "GET\r\n\r\n",
        "GET /\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "FOO /ingest HTTP/1.1\r\nhost: x\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        "\u0016\u0003\u0001\u0002",
        "GET /ingest HTTP/1.1\r\n\r\n",
        "CONNECT x:1 HTTP/1.1\r\nhost: x\r\n\r\n",
        "TRACE / HTTP/1.1\r\nhost: x\r\n\r\n"
      ])
    ),
  "a body of random bytes": (random) => post(random.pick(paths), bytes(random, random.below(400))),
  "a body of random text": (random) => post(random.pick(paths), text(random, random.below(200))),
  "any JSON": (random) =>
    post(
      random.pick(paths),
      JSON.stringify(random.pick([[value(random)], value(random), { [key(random)]: value(random) }])) ?? "null"
    ),
  "one field wrong": (random) => {
    const path = random.pick(paths)
    return post(path, spoiled(random, path))
  },
  "prototype keys": (random) =>
    post(
      random.pick(paths),
      `{"${random.pick(["__proto__", "constructor", "prototype"])}":${JSON.stringify(random.pick<unknown>([{ table: "fuzz", id: "x", message: "x" }, null, [], { toString: 1 }]))},"op":{"__proto__":1}}`
    ),
  "a query that is none": (random) => post("/view/register", JSON.stringify({ ...view, surql: queries(random) })),
  "deep nesting": (random) => post(random.pick(paths), nested(random)),
  "huge strings": (random) => post(random.pick(paths), huge(random)),
  "bad headers": (random) =>
    Buffer.from(
      `POST ${random.pick(paths)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\n${lines(random)}\r\n\r\n{}`,
      "utf8"
    ),
  "bad authorization": (random) =>
    Buffer.from(
      `POST /ingest HTTP/1.1\r\nhost: x\r\ncontent-length: 2\r\nauthorization: ${random.pick(["", "Bearer", `bearer\t${secret}`, "Bearer é", `Bearer ${secret} x`, "a".repeat(5000)])}\r\n\r\n{}`,
      "utf8"
    ),
  "bad targets": (random) =>
    Buffer.from(`GET ${target(random)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\n\r\n`, "utf8"),
  "bad chunks": (random) =>
    Buffer.from(
      `POST ${random.pick(paths)} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${secret}\r\ntransfer-encoding: chunked\r\n\r\n${random.pick(["zz\r\n{}\r\n0\r\n\r\n", "2\r\n{}}}}\r\n0\r\n\r\n", "ffffffffffffffffff\r\n", "1\r\n{\r\n0\r\n\r\n", "-1\r\n\r\n"])}`,
      "utf8"
    ),
  "cut short": (random) => {
    const whole = post("/ingest", JSON.stringify(change))
    return whole.subarray(0, 1 + random.below(whole.length - 1))
  }
}

export const kinds: ReadonlyArray<string> = Object.keys(makers)

export const malformed = (random: Rng): Malformed => {
  const kind = random.pick(kinds)
  return { kind, bytes: makers[kind]?.(random) ?? Buffer.alloc(0) }
}
