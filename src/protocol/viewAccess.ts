/**
 * Requests of pages (D49, D50): several views over one connection, tokens for views, renewals of views' lifetimes.
 */
import { Schema } from "effect"
import { count, reportAllFaults, StreamFormat } from "./wire.ts"

const viewId = Schema.String.annotations({ examples: ["posts"] })

const ms = Schema.Int.pipe(Schema.positive())

const AskedView = Schema.Struct({
  view: viewId,
  after: Schema.optional(Schema.String).annotations({
    description: "`id` of the last event that came, as `Last-Event-ID` of a stream of one view"
  }),
  token: Schema.optional(Schema.String).annotations({
    description: "For this view, where the request's own bearer is not for it"
  })
})

export const StreamOpening = Schema.Struct({
  views: Schema.Array(AskedView),
  format: Schema.optional(StreamFormat).annotations({ description: "Of all of them; `rows` when absent" })
}).annotations({
  ...reportAllFaults,
  identifier: "StreamOpening",
  examples: [{ views: [{ view: "posts" }, { view: "users", after: "m5k2-0.7" }], format: "rows" as const }]
})

export const StreamChange = Schema.Struct({
  add: Schema.optional(Schema.Array(AskedView)),
  drop: Schema.optional(Schema.Array(count)).annotations({ description: "Places; those that are over are left out" }),
  renew: Schema.optional(Schema.Array(Schema.Tuple(count, Schema.String))).annotations({
    description: "[place, token]: a token for the view there, in place of the one it was followed with"
  })
}).annotations({
  identifier: "StreamChange",
  examples: [{ add: [{ view: "likes" }], drop: [1], renew: [[0, "svc1.eyJ2Ijpb.c2ln"] as const] }]
})

export const StreamChanged = Schema.Struct({
  places: Schema.Array(count).annotations({ description: "Of the views added, in their order" })
}).annotations({ identifier: "StreamChanged", examples: [{ places: [2] }] })

export const TokenRequest = Schema.Struct({
  views: Schema.Array(viewId).pipe(Schema.minItems(1)),
  subject: Schema.optional(Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200))).annotations({
    description: "Whom it is for, in the caller's own words; what `POST /view/token/revoke` names"
  }),
  ttl_ms: Schema.optional(ms).annotations({
    description: "At most SVC_VIEW_TOKEN_TTL, which it is when absent; of a ticket at most 30,000"
  }),
  once: Schema.optional(Schema.Boolean).annotations({
    description:
      "A ticket for a browser's `EventSource`, which sends no header: good for one `GET /view/:view_id/stream?ticket=<token>`, and for nothing else"
  })
}).annotations({ identifier: "TokenAsked", examples: [{ views: ["posts"], subject: "user:ann" }] })

export const TokenAnswer = Schema.Struct({ token: Schema.String, expires_in_ms: ms }).annotations({
  identifier: "TokenGiven",
  examples: [{ token: "svc1.eyJ2IjpbInBvc3RzIl19.c2lnbmF0dXJl", expires_in_ms: 900_000 }]
})

export const TokenRevoked = Schema.Struct({
  subject: Schema.String.pipe(Schema.minLength(1), Schema.maxLength(200))
}).annotations({ identifier: "TokenRevoked", examples: [{ subject: "user:ann" }] })

export const Touch = Schema.Struct({ views: Schema.Array(viewId).pipe(Schema.maxItems(1000)) }).annotations({
  identifier: "Touch",
  examples: [{ views: ["posts", "gone"] }]
})

export const Touched = Schema.Struct({
  touched: Schema.Array(viewId).annotations({ description: "Those that are there and go on living" })
}).annotations({ identifier: "Touched", examples: [{ touched: ["posts"] }] })
