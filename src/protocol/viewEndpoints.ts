/** Endpoints that show a view, declared once for both Apis; each Api adds its middlewares, errors and descriptions. */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { Schema } from "effect"
import { opensViews, requiresScope } from "./access.ts"
import * as Examples from "./examples.ts"
import * as StreamEvents from "./streamEvents.ts"
import * as Wire from "./wire.ts"

const viewId = HttpApiSchema.param("view_id", Schema.String.annotations({ examples: [Examples.viewId] }))

const errors = Schema.optional(
  Schema.Literal("kinds").annotations({
    description: "What failed without ids and values, as a caller without the scope admin is told (D72)"
  })
)

export const read = HttpApiEndpoint.get("view")`/view/${viewId}`
  .setUrlParams(Schema.Struct({ format: Schema.optional(Wire.Format), errors }))
  .addSuccess(Wire.ViewResult)
  .annotateContext(opensViews)

export const stream = HttpApiEndpoint.get("stream")`/view/${viewId}/stream`
  .setUrlParams(StreamEvents.StreamQuery)
  .addSuccess(
    HttpApiSchema.Text({ contentType: "text/event-stream" }).annotations({
      examples: [Examples.eventStream, Examples.rowsStream]
    })
  )
  .annotateContext(opensViews)

export const debug = HttpApiEndpoint.get("debugView")`/debug/view/${viewId}`
  .setUrlParams(Schema.Struct({ errors }))
  .addSuccess(Wire.DebugView)
  .annotateContext(requiresScope("read"))
