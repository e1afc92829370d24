/**
 * The schedulers of a shared log (SVC_LOG_URL), in answers of a scheduler.
 */
import { Schema } from "effect"
import { count } from "./wire.ts"

export const SharedLog = Schema.Struct({
  role: Schema.Literal("leader", "follower").annotations({ description: "Of the scheduler that is asked" }),
  epoch: count,
  leader: Schema.NullOr(Schema.String).annotations({ description: "null: none is known" }),
  leader_url: Schema.NullOr(Schema.String),
  durability: Schema.Literal("flushed", "replicated", "relaxed").annotations({
    description: "Of the last write that was answered"
  }),
  schedulers: Schema.Array(
    Schema.Struct({
      id: Schema.String,
      url: Schema.String,
      applied: count.annotations({ description: "Position through which its replica is applied" }),
      synced: count.annotations({ description: "The same, on its disk" }),
      waiting: count.annotations({ description: "Events its replica lacks" })
    })
  )
}).annotations({ identifier: "SharedLog", description: "With SVC_LOG_URL: the schedulers of the log (D60)" })
