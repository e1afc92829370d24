/**
 * The server-sent events of a view's stream, in every format: what their `data` line holds, as JSON.
 *
 * For OpenAPI a stream is text, so the schemas are components, named by {@link streamEvents}, and the descriptions of
 * the operations name them. Tests check the server's events against them.
 */
import { Schema } from "effect"
import * as Examples from "./examples.ts"
import { count, RowError, StreamFormat, ViewResult } from "./wire.ts"

/** Query parameters of a stream of one view. */
export const StreamQuery = Schema.Struct({
  format: Schema.optional(StreamFormat),
  ticket: Schema.optional(Schema.String).annotations({
    description: "In place of a bearer: of `POST /view/token` with `once`"
  })
})

const hash = Schema.String.annotations({ description: "Of the result behind the event" })

const entry = Schema.Tuple(Schema.String, count).annotations({ description: "[record id, version]" })

const child = Schema.Struct({
  alias: Schema.String,
  parent: Schema.String,
  id: Schema.String,
  version: count,
  op: Schema.Literal("add", "update", "remove"),
  within: Schema.optional(Schema.String).annotations({
    description: "Of a child of a child: the aliases above its own"
  })
})

/** Formats flat, tree and streaming. */
export const Delta = Schema.Struct({
  seq: Schema.NullOr(count).annotations({
    description: "Position of the change in the scheduler's log, if it has one"
  }),
  additions: Schema.Array(entry),
  updates: Schema.Array(entry),
  removals: Schema.Array(Schema.String),
  subqueries: Schema.Array(child).annotations({ description: "Rows of subqueries, one for each place" }),
  result_hash: hash
}).annotations({
  identifier: "StreamDelta",
  description: "What one step did to the result, in format flat, tree or streaming (D11)",
  examples: [Examples.streamDelta]
})

const row = Schema.Unknown.annotations({ description: "A row as format tree gives it" })

export const RowsSnapshot = Schema.Struct({
  query_id: Schema.String,
  part: count,
  parts: Schema.Int.pipe(Schema.positive()),
  rows: Schema.Array(row).annotations({ description: "In order; parts continue each other" }),
  only: Schema.optional(Schema.Boolean).annotations({ description: "Last part: FROM ONLY, so one row or none" }),
  result_hash: Schema.optional(hash.annotations({ description: "Last part" })),
  errors: Schema.optional(Schema.Array(RowError)).annotations({ description: "Last part (D2a): rows left out, if any" })
}).annotations({
  identifier: "StreamRowsSnapshot",
  description:
    "A part of all rows, in format rows (D50). The last part has the event's `id`; it shows the result whole",
  examples: [Examples.rowsSnapshot]
})

const position = count

const path = Schema.Array(Schema.Union(Schema.String, count)).annotations({
  description: "Names of fields and positions of items, as the row stands behind the changes before; empty: the row"
})

export const RowChange = Schema.Union(
  Schema.Tuple(path, Schema.Unknown).annotations({ description: "[path, value]: set" }),
  Schema.Tuple(path).annotations({ description: "[path]: the field is removed" }),
  Schema.Tuple(path, position, count, Schema.Array(Schema.Unknown)).annotations({
    description: "[path, at, count, items]: `count` items of the list give way to `items`"
  })
)

export const RowsDelta = Schema.Struct({
  result_hash: hash,
  remove: Schema.optional(Schema.Array(position)).annotations({
    description: "First: positions in the list as it was, descending"
  }),
  insert: Schema.optional(Schema.Array(Schema.Tuple(position, row))).annotations({
    description: "Second: [position in the list as it will be, row], ascending"
  }),
  update: Schema.optional(Schema.Array(Schema.Tuple(position, row))).annotations({
    description: "Third: [position, row] in place of the row that stands there"
  }),
  patch: Schema.optional(Schema.Array(Schema.Tuple(position, Schema.Array(RowChange)))).annotations({
    description: "Fourth: [position, changes] of the row that stands there, in order"
  }),
  errors: Schema.optional(Schema.Array(RowError)).annotations({ description: "In place of those known so far (D2a)" })
}).annotations({
  identifier: "StreamRowsDelta",
  description: "What became of the rows, in format rows (D50); lists that are empty are absent",
  examples: [Examples.rowsDelta]
})

export const endReasons = {
  unregistered: "the view was unregistered",
  expired: "its time to live is over",
  replaced: "its id was registered with another query",
  reset: "all views and data were cleared",
  moved: "another SSP has it now",
  rebootstrap: "the SSP loads its records anew",
  shutdown: "the process stops",
  behind: "the client fell out of the buffer",
  quarantined: "its query is set aside (D48)",
  tooLarge: "its rows take more than they may; `message` names limit and setting",
  unauthorized: "the token it was followed with has expired",
  revoked: "that token was revoked"
} as const

export const End = Schema.Struct({
  reason: Schema.Literal(...(Object.keys(endReasons) as ReadonlyArray<keyof typeof endReasons>)),
  message: Schema.optional(Schema.String)
}).annotations({
  identifier: "StreamEnd",
  description: `The last event, without an id. ${Object.entries(endReasons)
    .map(([reason, meaning]) => `\`${reason}\`: ${meaning}`)
    .join("; ")}. A client comes back at once after moved, rebootstrap, replaced, reset, shutdown and behind`,
  examples: [{ reason: "moved" }]
})

export const Opened = Schema.Struct({
  stream: Schema.String.annotations({ description: "Names the stream in `POST /stream/:stream_id`" })
}).annotations({
  identifier: "StreamOpened",
  description: "The first event of a stream of several views",
  examples: [{ stream: Examples.streamId }]
})

export const Refused = Schema.Struct({ code: Schema.String, message: Schema.String }).annotations({
  identifier: "StreamRefused",
  description: "A view that this stream does not follow, and why: what the view's own stream would be refused with",
  examples: [{ code: "VIEW_NOT_FOUND", message: 'no view is registered under "gone"' }]
})

/** The events of both kinds of stream, by name. */
export const streamEvents = {
  entries: { snapshot: ViewResult, delta: Delta, end: End },
  rows: { snapshot: RowsSnapshot, delta: RowsDelta, end: End }
} as const

export const lastEventId =
  "`Last-Event-ID: <incarnation>.<n>`, the `id` of the last event, goes on behind it while what came since is buffered; else the stream begins with a snapshot. Numbers grow, and may skip in format rows."

/** Description of a stream of one view, for its operations. */
export const streamDoc =
  "Server-sent events: `snapshot`, `delta`, `end`; the schemas of their `data` are StreamDelta, StreamEnd and (the snapshot) ViewResult, with `format=rows` StreamRowsSnapshot and StreamRowsDelta. Lines that begin with a colon are heartbeats, one every 15 s at least. "

/** Description of a stream of several views. */
export const multiStreamDoc =
  "Server-sent events of several views over one connection. The first is `open` (StreamOpened). Then each view has its place, counted from 0 in the order of asking, and the events of its own stream, with a line `view: <place>` in front; `refused` (StreamRefused) where it is not followed. A view that ends or is refused leaves the others as they are."

/** Components for the OpenAPI document, because no endpoint refers to them. */
export const streamSchemas = [Delta, RowsSnapshot, RowsDelta, End, Opened, Refused]
