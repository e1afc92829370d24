/**
 * `GET /feed` and `POST /ssp/applied` (D61).
 *
 * By callback, because an SSP acknowledges every batch of the log, and no fiber stands between the log and the
 * connections that follow it.
 */
import { Effect, Runtime } from "effect"
import { isCount, isMapping, isText } from "../../core/typeGuards.ts"
import * as Answers from "../../node/http/answers.ts"
import type { Call } from "../../node/http/routes.ts"
import { Audit, unknownAddress } from "../../ports/Audit.ts"
import type { Reply } from "../../ports/Front.ts"
import * as Wire from "../../protocol/wire.ts"
import * as Errors from "../HttpErrors.ts"
import * as SspAuthority from "../pool/sspAuthority.ts"
import { Feeds, tablesOf } from "./Feeds.ts"

const ok = JSON.stringify({ status: "ok" })

const noTables = Answers.invalidRequest([
  { path: "tables", reason: "must be names with commas between them, each percent-encoded" }
])

/**
 * Parses the acknowledgement in a line; undefined if it is none. Parsed by hand: a schema would name each fault, which
 * takes longer than all the rest, and no fault of a line is answered.
 */
const wordIn = (line: string): typeof Wire.SspApplied.Type | undefined => {
  try {
    const json: unknown = JSON.parse(line)
    if (!isMapping(json)) return undefined
    const { registration, seq, ssp_id } = json
    return isText(ssp_id) && isCount(registration) && isCount(seq) ? { ssp_id, registration, seq } : undefined
  } catch {
    return undefined
  }
}

/** Limit of an acknowledgement's body: a few numbers and a name. */
const maxBodyBytes = 4096

type Applied = typeof Wire.SspApplied.Type

/** The routes of the feed. A caller follows and acknowledges for its own SSP alone. */
export const make = Effect.gen(function* () {
  const feeds = yield* Feeds
  const { turnedAway } = yield* Audit
  const runFork = Runtime.runFork(yield* Effect.runtime<never>())
  /** Refusal of a caller that may not act as this SSP; undefined: it may. */
  const forbidden = ({ asked: { address = unknownAddress }, caller: { name, onlySsp } }: Call, ssp: string) => {
    if (onlySsp === undefined || onlySsp === ssp) return undefined
    runFork(turnedAway({ object: `SSP ${ssp}`, secret: name, address, outcome: "FORBIDDEN" }))
    return SspAuthority.forbidden(name, ssp)
  }
  const open = (call: Call & { readonly urlParams: typeof Wire.FeedQuery.Type }, reply: Reply) => {
    const { after, registration, tables: names } = call.urlParams
    const tables = tablesOf(names)
    if (tables === undefined) return noTables
    const home = feeds.homeOf(registration)
    const refused = home && forbidden(call, home.ssp)
    if (refused !== undefined) return refused
    const asked = { after, registration, tables }
    if (call.asked.method !== "HEAD") return feeds.open(asked, (headers, on) => reply.stream(headers, on))
    const gone = feeds.refusal(asked)
    if (gone === undefined) reply.send({ status: 200, headers: { "content-type": Wire.feedType }, pieces: [] })
    return gone
  }
  /** Takes an SSP's acknowledgement; answers why it is refused, or undefined. */
  const said = (call: Call, { registration, seq, ssp_id: ssp }: Applied) =>
    // Another scheduler may lead since the guard was passed.
    call.away() ??
    forbidden(call, ssp) ??
    (feeds.applied({ ssp, registration, seq }) ? undefined : Errors.notRegistered(ssp))
  return {
    feed: {
      answer: (call: Parameters<typeof open>[0], reply: Reply): void => {
        const refused = open(call, reply)
        if (refused !== undefined) reply.send(Answers.toAnswer(refused))
      }
    },
    applied: {
      maxBodyBytes,
      answer: (call: Call & { readonly payload: Applied }, reply: Reply): void => {
        const refused = said(call, call.payload)
        reply.send(refused === undefined ? { status: 200, body: ok } : Answers.toAnswer(refused))
      },
      lines:
        (call: Call) =>
        (line: string): boolean => {
          const word = wordIn(line)
          return word !== undefined && said(call, word) === undefined
        }
    }
  }
})
