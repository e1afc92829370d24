/**
 * The call of a job as data: paths that try to get away, answers and what they mean, delays within the policy.
 *
 * Why many paths and random ones: the path is written by users and the token goes with it; one hole is a leak.
 */
import { Either } from "effect"
import { describe, expect, it } from "vitest"
import { rng, runs } from "../../../kit/data/random.ts"
import * as Job from "../../../src/core/job/job.ts"
import * as Outcome from "../../../src/core/job/outcome.ts"
import * as Request from "../../../src/core/job/request.ts"
import * as Retry from "../../../src/core/job/retry.ts"

const base = "https://api.example.com:8443/v1"
const urlOf = (path: string, baseUrl = base): string | undefined =>
  Either.getOrUndefined(Request.resolve(baseUrl, path))

const hostile = [
  "",
  "send",
  "//evil.example/x",
  "///evil.example/x",
  "/\\evil.example",
  "\\\\evil.example",
  "/a\\..\\..\\b",
  "https://evil.example/",
  "javascript:alert(1)",
  "/..",
  "/../x",
  "/..;/admin",
  "/.;/admin",
  "/a/..;v=1/../admin",
  "/%2e%2e;/admin",
  "/..%3B/admin",
  "/.%2e%3bx/y",
  "/a/../../x",
  "/a/..",
  "/.",
  "/a/./b",
  "/%2e%2e/x",
  "/%2E%2e/x",
  "/.%2e/x",
  "/%2e/x",
  "/a/%2e%2e",
  "/a#b",
  "/#",
  "/a\nb",
  "/a\r\nHost: evil",
  "/a\tb",
  "/a\u0000b",
  "/a\u007fb",
  "/a\u0085b",
  "/a\u2028b",
  "/a%2f..%2fb",
  "/a%5c..%5cb",
  "/a%0d%0ab",
  "/a%00",
  "/\ud800",
  "/a\udfffb",
  " /a",
  "@evil.example/",
  ":80/",
  "/..?x",
  "/../?x#y"
]

describe("D37 paths", () => {
  for (const path of hostile) {
    it(`D37 refuses ${JSON.stringify(path)}`, () =>
      expect(Either.isLeft(Request.resolve(base, path)), String(urlOf(path))).toBe(true))
  }
  it("D37 takes what stays where it belongs", () => {
    expect(
      [
        "/send",
        "/",
        "/a/b?x=1&y=../z",
        "/a..b/...",
        "/a;v=1/b",
        "/a..;x",
        "/ä/😀",
        "/a@b:80",
        "/a%20b",
        "/a//b",
        "/%zz",
        "/a?next=//evil"
      ].map((path) => urlOf(path))
    ).toEqual([
      `${base}/send`,
      `${base}/`,
      `${base}/a/b?x=1&y=../z`,
      `${base}/a..b/...`,
      `${base}/a;v=1/b`,
      `${base}/a..;x`,
      `${base}/%C3%A4/%F0%9F%98%80`,
      `${base}/a@b:80`,
      `${base}/a%20b`,
      `${base}/a//b`,
      `${base}/%zz`,
      `${base}/a?next=//evil`
    ])
    expect([
      urlOf("/x", "http://h"),
      urlOf("/x", "http://h/"),
      urlOf("/x", "http://h/p/"),
      urlOf("/x", "http://h/p?q=1#f")
    ]).toEqual(["http://h/x", "http://h/x", "http://h/p/x", "http://h/p/x"])
  })
  it("D37 whatever the path, a call stays on origin and prefix, or there is none", () => {
    const random = rng(3)
    const parts = [
      "/",
      "//",
      "..",
      ".",
      "%2e",
      "%2E%2e",
      "\\",
      "@",
      ":",
      "#",
      "?",
      "evil.example",
      "http:",
      "a",
      "é",
      "%2f",
      "%5c",
      "\n",
      "\t",
      " ",
      ";",
      "%",
      "\ud800",
      "v1",
      "&",
      "%00",
      "\u3002"
    ]
    let taken = 0
    for (let i = 0; i < runs(4000); i++) {
      const path = `${random.chance(0.8) ? "/" : ""}${Array.from({ length: random.below(7) }, () => random.pick(parts)).join("")}`
      const made = urlOf(path)
      if (made === undefined) continue
      taken++
      const url = new URL(made)
      expect([url.origin, url.username, url.hash, url.pathname.startsWith("/v1/")], path).toEqual([
        "https://api.example.com:8443",
        "",
        "",
        true
      ])
    }
    expect(taken).toBeGreaterThan(300)
  })
})

describe("D37 the request", () => {
  const job = { id: "email_job:a", path: "/send", payload: { to: "x", n: [1, null] }, traceparent: undefined }
  it("D37 carries payload, token, idempotency key and trace", () => {
    const traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    expect(
      Either.getOrThrow(Request.prepare({ ...job, traceparent }, { baseUrl: base, token: "t0k", timeoutMs: 5 }))
    ).toEqual({
      url: `${base}/send`,
      timeoutMs: 5,
      keptBytes: 0,
      body: `{"to":"x","n":[1,null]}`,
      headers: {
        "content-type": "application/json",
        accept: "application/json, */*;q=0.5",
        authorization: "Bearer t0k",
        "idempotency-key": "email_job:a",
        traceparent
      }
    })
  })
  it("D37 without token, payload or trace says nothing of them", () => {
    const call = Either.getOrThrow(
      Request.prepare({ ...job, payload: undefined }, { baseUrl: base, token: undefined, timeoutMs: 5 })
    )
    expect([call.body, Object.keys(call.headers).sort()]).toEqual(["{}", ["accept", "content-type", "idempotency-key"]])
  })
  it("D37 the idempotency key fits a header whatever the id holds, and different ids have different keys", () => {
    const ids = ["t:a b", "t:a%20b", "t:⟨é⟩", "t:`\r\nx: y`", "t:\ud800", "t:a+b", "t:a", "t:{ a: 1 }"]
    const keys = ids.map(Request.headerText)
    for (const key of keys) expect(key).toMatch(/^[\x21-\x7e]+$/)
    expect(new Set(keys).size).toBe(ids.length)
  })
})

describe("D37 answers", () => {
  const now = Date.UTC(2026, 0, 1)
  const kinds = (...statuses: ReadonlyArray<number>) =>
    statuses.map((status) => Outcome.ofAnswer({ status, retryAfter: undefined, body: "" }, now).kind)
  it("D37 2xx is success, 408 425 429 and 5xx come again, anything else is final", () => {
    expect(kinds(200, 201, 202, 204, 299)).toEqual(Array(5).fill("success"))
    expect(kinds(408, 425, 429, 500, 502, 503, 504, 599)).toEqual(Array(8).fill("again"))
    expect(kinds(300, 301, 302, 304, 307, 308, 400, 401, 403, 404, 409, 422, 499, 101)).toEqual(Array(14).fill("final"))
  })
  it("D37 Retry-After: seconds and the three forms of a date; nonsense is as if absent", () => {
    const after = (text: string | undefined) => Outcome.retryAfterMs(text, now)
    expect([
      after("120"),
      after(" 0 "),
      after("Thu, 01 Jan 2026 00:02:00 GMT"),
      after("Thursday, 01-Jan-26 00:00:07 GMT"),
      after("Thu Jan  1 00:00:09 2026"),
      after("Wed, 31 Dec 2025 23:00:00 GMT")
    ]).toEqual([120_000, 0, 120_000, 7000, 9000, 0])
    expect(
      [
        undefined,
        "",
        "-1",
        "1.5",
        "soon",
        "2026-01-01",
        "Thu, 31 Feb 2026 00:00:00 GMT",
        "Thu, 01 Jan 2026 25:00:00 GMT",
        "Thu, 01 Foo 2026 00:00:00 GMT"
      ].map(after)
    ).toEqual(Array(9).fill(undefined))
  })
  it("D38 reasons quote the body and are cut at 2,000 characters, never inside a character", () => {
    expect(Outcome.ofAnswer({ status: 500, retryAfter: undefined, body: " out of paper\n" }, now)).toEqual({
      kind: "again",
      code: 500,
      reason: "the backend answered 500: out of paper",
      retryAfterMs: undefined
    })
    for (const filler of ["x", "😀", "x😀"]) {
      const { reason } = Job.jobError(1, 500, filler.repeat(3000), now)
      expect([reason.length <= 2000, reason.length >= 1998, /[\uD800-\uDBFF](?![\uDC00-\uDFFF])/.test(reason)]).toEqual(
        [true, true, false]
      )
    }
    expect(Job.jobError(2, 0, "x", now)).toEqual({ attempt: 2, code: 0, reason: "x", at: "2026-01-01T00:00:00.000Z" })
  })
})

describe("D38 retries", () => {
  const policy: Retry.Policy = { baseMs: 1000, maxRetries: 100 }
  const draw = { nowMs: 0, jitter: 0 }
  const error = (attempt: number) => ({ attempt, code: 500, reason: "", at: "" })
  it("D38 linear is base × n, exponential base × 2^(n-1), at most 5 minutes", () => {
    expect([1, 2, 3, 10, 1000].map((n) => Retry.delayMs("linear", n, 1000, 0))).toEqual([
      1000, 2000, 3000, 10_000, 300_000
    ])
    expect([1, 2, 3, 9, 10, 5000].map((n) => Retry.delayMs("exponential", n, 1000, 0))).toEqual([
      1000, 2000, 4000, 256_000, 300_000, 300_000
    ])
  })
  it("D38 the draw moves a delay by ten percent at most, to either side", () => {
    expect([-1, -0.5, 0, 1].map((jitter) => Retry.delayMs("linear", 2, 1000, jitter))).toEqual([1800, 1900, 2000, 2200])
  })
  it("D38 a job is called 1 + max_retries times, whatever the errors hold that is not ours", () => {
    for (const maxRetries of [0, 1, 3, 7]) {
      let errors: ReadonlyArray<unknown> = [{ message: "from another runner" }, null, "x"]
      let calls = 0
      for (let over = false; !over && calls < 50; ) {
        calls++
        const decision = Retry.decide(
          { errors, maxRetries, strategy: "linear" },
          Outcome.noAnswer("reset"),
          policy,
          draw
        )
        if (decision.kind === "success") throw new Error("no")
        expect(decision.error).toMatchObject({ attempt: calls, code: 0, reason: "reset" })
        errors = [...errors, decision.error]
        over = decision.kind === "failed"
      }
      expect(calls).toBe(1 + maxRetries)
    }
  })
  it("D38 max_retries is capped by the setting; Retry-After only makes a delay longer, and at most an hour", () => {
    const asked = (retryAfterMs: number) =>
      Retry.decide(
        { errors: [error(1)], maxRetries: 3, strategy: "linear" },
        { kind: "again", code: 429, reason: "", retryAfterMs },
        policy,
        draw
      )
    expect([asked(10), asked(60_000), asked(9e9)].map((decision) => "delayMs" in decision && decision.delayMs)).toEqual(
      [2000, 60_000, 3_600_000]
    )
    expect(
      Retry.decide(
        { errors: [error(1), error(2)], maxRetries: 1000, strategy: "linear" },
        Outcome.noAnswer(""),
        { ...policy, maxRetries: 2 },
        draw
      ).kind
    ).toBe("failed")
  })
  it("D38 attempts begin again after an operator's mark, and a final outcome ends at once", () => {
    const marked = [error(1), error(2), { attempt: 0, code: 0, reason: "retried by an operator", at: "" }, error(1)]
    expect(Job.failures(marked)).toBe(1)
    expect(
      Retry.decide({ errors: marked, maxRetries: 1, strategy: "linear" }, Outcome.noAnswer(""), policy, draw)
    ).toMatchObject({ kind: "failed", error: { attempt: 2 } })
    expect(
      Retry.decide({ errors: [], maxRetries: 9, strategy: "linear" }, Outcome.noCall("no path"), policy, draw)
    ).toMatchObject({ kind: "failed", error: { attempt: 1, code: 0, reason: "no path" } })
  })
})

describe("reading a record", () => {
  it("takes the table's defaults for fields that are missing or odd", () => {
    expect(Job.read("t:1", "t", { status: "pending" })).toEqual({
      id: "t:1",
      table: "t",
      status: "pending",
      path: "",
      payload: undefined,
      maxRetries: 3,
      strategy: "linear",
      errors: [],
      traceparent: undefined
    })
    expect(
      Job.read("t:1", "t", {
        status: "processing",
        path: "/x",
        payload: 1,
        max_retries: 0,
        retry_strategy: "exponential",
        errors: [1],
        traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
      })
    ).toMatchObject({
      path: "/x",
      payload: 1,
      maxRetries: 0,
      strategy: "exponential",
      errors: [1],
      traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    })
    expect(
      Job.read("t:1", "t", {
        status: "pending",
        max_retries: -1,
        retry_strategy: "never",
        errors: "x",
        path: 7,
        traceparent: "00-x"
      })
    ).toMatchObject({ maxRetries: 3, strategy: "linear", errors: [], path: "", traceparent: undefined })
    expect([Job.read("t:1", "t", {}), Job.read("t:1", "t", { status: "done" })]).toEqual([undefined, undefined])
  })
})
