/**
 * Endpoints for pages (streams, tokens, touches: D49, D50), declared once for both Apis; each Api adds its middlewares
 * and errors.
 */
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import { Schema } from "effect"
import { audits, opensViews, requiresScope } from "./access.ts"
import * as Errors from "./errors.ts"
import * as Examples from "./examples.ts"
import { JsonBody } from "./jsonBody.ts"
import { doc } from "./openApi.ts"
import * as StreamEvents from "./streamEvents.ts"
import * as ViewAccess from "./viewAccess.ts"
import * as Wire from "./wire.ts"

export const description = "Live views for pages: several over one connection, tokens."

export const openStream = HttpApiEndpoint.post("openStream")`/stream`
  .setPayload(ViewAccess.StreamOpening)
  .middleware(JsonBody)
  .addSuccess(
    HttpApiSchema.Text({ contentType: "text/event-stream" }).annotations({ examples: [Examples.multiStream] })
  )
  .annotateContext(opensViews)
  .annotateContext(
    doc(
      "Follow several views over one connection (extension)",
      `${StreamEvents.multiStreamDoc} At most SVC_STREAM_VIEWS at a time.`
    )
  )

export const changeStream = HttpApiEndpoint.post(
  "changeStream"
)`/stream/${HttpApiSchema.param("stream_id", Schema.String.annotations({ examples: [Examples.streamId] }))}`
  .setPayload(ViewAccess.StreamChange)
  .middleware(JsonBody)
  .addSuccess(ViewAccess.StreamChanged)
  .addError(Errors.StreamNotFound)
  .annotateContext(opensViews)
  .annotateContext(
    doc(
      "Add and drop views of an open stream (extension)",
      "And renew the tokens of those it goes on with. The events of a view that is added may come before this answer. Places are never given twice."
    )
  )

export const token = HttpApiEndpoint.post("token")`/view/token`
  .setPayload(ViewAccess.TokenRequest)
  .middleware(JsonBody)
  .addSuccess(ViewAccess.TokenAnswer)
  .annotateContext(requiresScope("read"))
  .annotateContext(
    doc(
      "A token for some views (extension)",
      "For a browser: it opens reading, streaming and touching of these views, registered or not, and nothing else (D49). At most SVC_STREAM_VIEWS of them. 403 where no secret with the scope read is known in the clear, since those sign."
    )
  )

export const revoke = HttpApiEndpoint.post("revoke")`/view/token/revoke`
  .setPayload(ViewAccess.TokenRevoked)
  .middleware(JsonBody)
  .addSuccess(Wire.Ok)
  .annotateContext(audits("view.token.revoke", "register"))
  .annotateContext(
    doc(
      "Revoke the tokens of a subject (extension)",
      "Those given so far open nothing more at this process, and streams that go on with one end with `revoked`."
    )
  )

export const touch = HttpApiEndpoint.post("touch")`/view/touch`
  .setPayload(ViewAccess.Touch)
  .middleware(JsonBody)
  .addSuccess(ViewAccess.Touched)
  .addError(Errors.Overloaded)
  .annotateContext(opensViews)
  .annotateContext(
    doc(
      "Let views live on (extension)",
      "Their time to live begins again (D14), as with a refresh by `POST /view/register`. Views that are not there, or that the token does not name, are left out of the answer."
    )
  )
