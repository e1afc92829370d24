/**
 * The door of the conformance suites (library): what every layer of a port must do, for layers of your own.
 *
 * They are the suites that the layers of this package pass. They run under vitest, which with `@effect/vitest` is an
 * optional peer: nothing else here asks for it.
 */
import { databaseSuite } from "./testing/Database.suite.ts"
import { jobStoreSuite } from "./testing/JobStore.suite.ts"
import { replicaSuite } from "./testing/Replica.suite.ts"
import { upstreamSuite } from "./testing/Upstream.suite.ts"
import { walSuite } from "./testing/Wal.suite.ts"

/**
 * By port. Each takes a name and what makes a fresh layer, over given records where a port has no way to write them.
 */
export const conformance = {
  database: databaseSuite,
  jobStore: jobStoreSuite,
  replica: replicaSuite,
  upstream: upstreamSuite,
  wal: walSuite
} as const
