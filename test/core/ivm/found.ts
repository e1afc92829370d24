/**
 * Cases that random runs have found, cut down, each with the fault it showed; they are replayed before anything random.
 *
 * Why kept: the generator changes and seeds move on, a fault that was there once may come back. A case is committed with
 * its repair. `what` names the fault, not the query.
 */
import type { Case } from "./runCase.ts"

export interface Found {
  readonly what: string
  readonly steps: Case
}

export const found: ReadonlyArray<Found> = [
  {
    what: "a row whose sort value comes over a link moves when the linked record changes",
    steps: [
      { write: [{ table: "post", id: "post:1", op: "CREATE", record: { author: "person:1" } }, { table: "post", id: "post:2", op: "CREATE", record: { author: "person:2" } }, { table: "person", id: "person:2", op: "CREATE", record: { s: "b" } }] },
      { watch: "ordered", query: "SELECT * FROM post ORDER BY author.s, id" },
      { watch: "windowed", query: "SELECT * FROM post ORDER BY author.s, id LIMIT 1" },
      { write: [{ table: "person", id: "person:1", op: "CREATE", record: { s: "c" } }, { table: "person", id: "person:2", op: "DELETE", record: {} }] }
    ]
  }
]
