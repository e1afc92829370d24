/**
 * The reading of JSON bodies as a middleware of both contracts: bounded, whatever the content type says (D17).
 *
 * A declaration only; `node/http/bodies.ts` carries it out.
 */
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import { Schema } from "effect"
import * as Errors from "./errors.ts"

/** Reads the body whatever its content type says, bounded in size and depth (D17), and hands it on as JSON. */
export class JsonBody extends HttpApiMiddleware.Tag<JsonBody>()("protocol/JsonBody", {
  provides: HttpServerRequest.HttpServerRequest,
  failure: Schema.Union(Errors.PayloadTooLarge, Errors.InvalidRequest, Errors.Overloaded)
}) {}
