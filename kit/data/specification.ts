/**
 * The bodies of the specification, each with its fields and no other: what a node reads that knows nothing else.
 *
 * Written down a second time, and not taken from `src/protocol`, so that an extension which gets into a body of the
 * specification fails here.
 */
import { Either, Schema } from "effect"

const text = Schema.String
const maybe = <A, I>(schema: Schema.Schema<A, I>) => Schema.optional(schema)
const object = Schema.Record({ key: Schema.String, value: Schema.Unknown })

const bodies = {
  change: Schema.Struct({ table: text, op: Schema.Literal("CREATE", "UPDATE", "DELETE"), id: text, record: object }),
  viewRegistration: Schema.Struct({
    id: text.pipe(Schema.startsWith("incantation:")),
    surql: text,
    clientId: text,
    ttl: text,
    params: maybe(Schema.NullOr(object)),
    lastActiveAt: maybe(text),
    format: maybe(Schema.NullOr(text))
  }),
  viewUnregistration: Schema.Struct({ id: text }),
  sspRegistration: Schema.Struct({ ssp_id: text, url: text }),
  sspRegistered: Schema.Struct({ snapshot_seq: Schema.Number }),
  heartbeat: Schema.Struct({
    ssp_id: text,
    timestamp: Schema.Number,
    views: Schema.Number,
    cpu_usage: maybe(Schema.Number),
    memory_usage: maybe(Schema.Number)
  }),
  jobResult: Schema.Struct({
    job_id: text,
    status: Schema.Literal("pending", "running", "completed", "failed"),
    result: maybe(object),
    error: maybe(Schema.NullOr(text))
  }),
  query: Schema.Struct({ query: text })
} as const

type Bodies = typeof bodies
export type Change = Bodies["change"]["Type"]

/** A body as the specification has it; left: what is wrong with it. */
export const read = <K extends keyof Bodies>(kind: K, json: unknown): Either.Either<Bodies[K]["Type"], string> =>
  Either.mapLeft(
    Schema.decodeUnknownEither(bodies[kind] as Schema.Schema<Bodies[K]["Type"], unknown>, {
      onExcessProperty: "error"
    })(json),
    ({ message }) => `${kind}: ${message}`
  )
