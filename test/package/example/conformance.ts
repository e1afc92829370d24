/**
 * A store of your own, held to what every store has to do: the suites of the package, under vitest.
 *
 * Needs `vitest` 3.2.7 and `@effect/vitest` 0.30.0 beside the package, the versions that it names as peers. A suite takes
 * a name and what makes a fresh, empty layer.
 */
import { Layer } from "effect"
import { Database } from "surreal-live-sidecar/ports/Database"
import { conformance } from "surreal-live-sidecar/testing"

conformance.database("a store of my own", () => Layer.fresh(Database.layerMemory))
