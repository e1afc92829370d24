/**
 * The front of a node for its servers, and an app of the same routes for any server that takes `HttpApi.Api`, with
 * pages, documents and a composer's routes beside it.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as OpenApi from "@effect/platform/OpenApi"
import { Context, Effect, Layer, type Scope } from "effect"
import type * as Cors from "../../core/access/cors.ts"
import type { Audit } from "../../ports/Audit.ts"
import { Front, type IncomingRequest } from "../../ports/Front.ts"
import * as Pages from "../../ports/Pages.ts"
import { Release } from "../../ports/Release.ts"
import type { RequestBody } from "../../ports/RequestBody.ts"
import { respond, toAnswer } from "./answers.ts"
import * as Bodies from "./bodies.ts"
import * as Dispatch from "./dispatch.ts"
import * as Documents from "./documents.ts"
import * as WebApp from "./webApp.ts"
import * as WebHeaders from "./webHeaders.ts"

type Around = (app: HttpApp.Default) => HttpApp.Default

interface FrontParts extends Dispatch.DispatchParts {
  readonly origins: Cors.Origins
  /** Which requests of the contract this process answers by itself; absent: all of them. */
  readonly isOwn?: (asked: Pick<IncomingRequest, "headers" | "url">) => boolean
  /** Wraps the router, which has the routes beside the contract. */
  readonly around?: Around
}

/** Silences the router too while the node answers nothing. */
const unlessSilent =
  (silent: NonNullable<Dispatch.DispatchParts["silent"]>): Around =>
  (app) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => {
      const refused = () => {
        const error = silent(url)
        return error && Effect.succeed(respond(toAnswer(error)))
      }
      return refused() ?? Effect.flatMap(Effect.either(app), (answer) => refused() ?? answer)
    })

/** The front of a node, and its app for servers that take one. */
export const layer = <R>(
  parts: Effect.Effect<FrontParts, never, R>
): Layer.Layer<Front | HttpApi.Api, never, Exclude<R, Scope.Scope> | Audit | RequestBody | Release> =>
  Layer.unwrapScoped(
    Effect.gen(function* () {
      const { around, isOwn, origins, ...dispatched } = yield* parts
      const { api, silent } = dispatched
      const dispatch = yield* Dispatch.make(dispatched)
      const front: typeof Front.Service = {
        serve: isOwn === undefined ? dispatch : (asked, reply) => isOwn(asked) && dispatch(asked, reply),
        pageHeaders: WebHeaders.pageHeadersFor(origins)
      }
      const served = yield* WebApp.make(front)
      const allowed = Bodies.methodsByPath(api, yield* Pages.paths)
      const { version } = yield* Release
      const rest = around ?? (silent === undefined ? (app: HttpApp.Default) => app : unlessSilent(silent))
      // The documents carry the version of this build.
      const described = (api as unknown as (typeof HttpApi.Api.Service)["api"]).annotate(OpenApi.Version, version)
      const app: Around = (router) => WebHeaders.wrap(origins)(Bodies.answerEverything(allowed)(served(rest(router))))
      return Layer.mergeAll(HttpApiBuilder.middleware(app), Pages.layerRoutes, Documents.layer).pipe(
        Layer.provideMerge(Layer.succeed(HttpApi.Api, { api: described, context: Context.empty() })),
        Layer.merge(Layer.succeed(Front, front)),
        Layer.provideMerge(Bodies.layerRouting)
      )
    })
  )
