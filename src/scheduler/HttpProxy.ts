/**
 * `POST /proxy/query`: what the executor of the replica answers, as a response that names the position it was read at (D20, D28).
 *
 * Apart from the other handlers because its answer is a header and a text, not a value that a schema encodes.
 */
import { Effect } from "effect"
import type { ProxyQuery } from "../protocol/schedulerWire.ts"

export const handler = Effect.succeed((query: typeof ProxyQuery.Type) => Effect.die(`not wired: ${query.query}`))
