/**
 * Callers who may not ask (D47): pages of other sites, names that were made to lead here, addresses from outside.
 *
 * `callers.test.ts` goes through them over real processes; addresses cannot be made up on one machine, so those are
 * judged by the rule itself. `storm.campaign.test.ts` asks them in any order.
 */
import { create } from "../../../kit/data/registration.ts"

export interface Row {
  readonly what: string
  readonly ask: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: unknown
  readonly status: number
  readonly code?: string
}

export const evil = "http://evil.example"
const form = { "content-type": "application/x-www-form-urlencoded" }
const plain = { "content-type": "text/plain" }
const change = JSON.stringify(create("planted:1"))

/** What holds at every server, whatever it asks for. */
export const pages: ReadonlyArray<Row> = [
  {
    what: "a page of another site that posts text",
    ask: "POST /ingest",
    headers: { ...plain, origin: evil },
    body: change,
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a form of another site",
    ask: "POST /ingest",
    headers: { ...form, origin: evil },
    body: change,
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a page of another site that posts JSON",
    ask: "POST /ingest",
    headers: { origin: evil },
    body: change,
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a page without an origin of its own",
    ask: "POST /ingest",
    headers: { ...plain, origin: "null" },
    body: change,
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a page of the same host on another port",
    ask: "POST /ingest",
    headers: { origin: "http://127.0.0.1:1" },
    body: change,
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a page whose origin only begins like ours",
    ask: "GET /info",
    headers: { host: "127.0.0.1:9667", origin: "http://127.0.0.1:9667.evil.example" },
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "an origin that is no address",
    ask: "GET /info",
    headers: { origin: "://" },
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a page of another site that reads",
    ask: "GET /metrics",
    headers: { origin: evil },
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a preflight of another site",
    ask: "OPTIONS /ingest",
    headers: { origin: evil, "access-control-request-method": "POST" },
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a page of another site at a path that is none",
    ask: "POST /nowhere",
    headers: { origin: evil },
    body: "{}",
    status: 403,
    code: "FORBIDDEN"
  },
  {
    what: "a page of this server that posts a form",
    ask: "POST /ingest",
    headers: { ...form, host: "127.0.0.1:9667", origin: "http://127.0.0.1:9667" },
    body: change,
    status: 415,
    code: "UNSUPPORTED_MEDIA_TYPE"
  },
  {
    what: "a page of this server that posts text",
    ask: "POST /ingest",
    headers: { ...plain, host: "localhost", origin: "http://localhost" },
    body: change,
    status: 415,
    code: "UNSUPPORTED_MEDIA_TYPE"
  },
  {
    what: "anybody who loads what describes the service",
    ask: "GET /openapi.json",
    headers: { origin: evil },
    status: 200
  }
]

/** What holds where nobody is asked for a secret. */
export const names: ReadonlyArray<Row> = [
  ...[
    "rebound.example",
    "rebound.example:9667",
    "127.0.0.1.rebound.example",
    "localhost.rebound.example",
    "10.0.0.1.nip.io",
    "internal.example",
    "local.example.",
    "xn--e1afmkfd.example",
    "a b",
    "[::1",
    "evil.example/@localhost",
    "localhost@evil.example"
  ].map(
    (host): Row => ({
      what: `the name ${host}`,
      ask: "POST /proxy/query",
      headers: { host },
      body: { query: "RETURN 1" },
      status: 421,
      code: "MISDIRECTED_REQUEST"
    })
  ),
  {
    what: "a page under a name that was made to lead here",
    ask: "POST /ssp/register",
    headers: { host: "rebound.example", origin: "http://rebound.example" },
    body: { ssp_id: "x", url: "http://rebound.example" },
    status: 421,
    code: "MISDIRECTED_REQUEST"
  },
  ...[
    "127.0.0.1",
    "127.0.0.1:9667",
    "[::1]:9667",
    "localhost",
    "LOCALHOST.",
    "scheduler",
    "scheduler:9667",
    "scheduler.default.svc",
    "scheduler.default.svc.cluster.local:9667",
    "box.local",
    "db.internal",
    "10.1.2.3",
    "allowed.example",
    "a.below.example:1"
  ].map(
    (host): Row => ({
      what: `the name ${host}, which is not somebody else's`,
      ask: "POST /proxy/query",
      headers: { host },
      body: { query: "RETURN 1" },
      status: 200
    })
  ),
  {
    what: "a probe, whatever it says of itself",
    ask: "GET /livez",
    headers: { origin: evil, host: "rebound.example" },
    status: 200
  },
  {
    what: "the default content type of curl, where no page can be behind it",
    ask: "POST /proxy/query",
    headers: form,
    body: JSON.stringify({ query: "RETURN 1" }),
    status: 200
  }
]

/** Clients that an open server answers. */
export const inside: ReadonlyArray<string> = [
  "127.0.0.1",
  "::1",
  "::ffff:127.0.0.1",
  "::ffff:10.1.2.3",
  "10.0.0.1",
  "172.16.5.5",
  "192.168.0.9",
  "fd12::7"
]

/** Clients that are told which setting lets them in. */
export const outside: ReadonlyArray<string> = [
  "8.8.8.8",
  "203.0.113.5",
  "::ffff:203.0.113.5",
  "2001:db8::1",
  "172.32.0.1",
  "169.254.1.1",
  "100.64.0.1",
  "64:ff9b::7f00:1",
  "2002:7f00:1::1",
  "",
  "nonsense"
]
