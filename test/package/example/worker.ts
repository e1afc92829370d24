/**
 * The engine alone in a web worker: record changes come in as messages, the view's rows go out.
 *
 * Nothing of the service is needed for that: `core` is plain functions on values, so any process with the changes can
 * keep the view.
 */
import { Either } from "effect"
import { Engine } from "surreal-live-sidecar/core/ivm/engine"
import { decodeChanges } from "surreal-live-sidecar/core/record/change"
import { parseSelect } from "surreal-live-sidecar/core/surql/syntax/parse"
import { toJson } from "surreal-live-sidecar/core/surql/values/json"

const engine = new Engine()
const query = parseSelect(
  "SELECT Origin, count() AS cars, math::max(Horsepower) AS strongest FROM cars GROUP BY Origin ORDER BY Origin"
)
const view = Either.getOrThrow(engine.acquire(Either.getOrThrow(query), {}))

self.onmessage = ({ data }: MessageEvent) => {
  const writes = engine.plan(Either.getOrThrow(decodeChanges(data)))
  engine.applyAll(writes.filter((write) => write !== undefined))
  self.postMessage(view.rows().map((row) => toJson(row.value())))
}
