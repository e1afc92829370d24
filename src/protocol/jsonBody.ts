/**
 * JSON bodies as a middleware of both contracts: bounded, whatever the content type says (D17).
 *
 * Only declared here; `node/http/bodies.ts` implements it.
 */
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Schema } from "effect"
import * as Errors from "./errors.ts"

/** Parses the body as JSON whatever its content type says, bounded in size and depth (D17). */
export class JsonBody extends HttpApiMiddleware.Tag<JsonBody>()("protocol/JsonBody", {
  provides: HttpServerRequest.HttpServerRequest,
  failure: Schema.Union(Errors.PayloadTooLarge, Errors.InvalidRequest, Errors.Overloaded)
}) {}
