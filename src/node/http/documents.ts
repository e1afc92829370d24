/**
 * The documents of an API: `GET /openapi.json` and the page of `GET /docs`.
 *
 * Each is made on first use: the page is two megabytes of text, and reading it with its document took an eighth of a
 * start.
 */
import type * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import { Effect, Layer } from "effect"

const { Router } = HttpApiBuilder

/** A route for `path`, whose `routes` are made on first use. */
const later = (path: `/${string}`, routes: Effect.Effect<Layer.Layer<never, never, HttpApi.Api>>) =>
  Router.use((router) =>
    Effect.gen(function* () {
      const api = yield* Effect.context<HttpApi.Api>()
      const made = yield* Effect.cached(
        Effect.flatMap(routes, (layer) =>
          Effect.scoped(
            Effect.provide(
              Effect.flatMap(Router, (own) => own.router),
              layer.pipe(Layer.provideMerge(Router.Live), Layer.provide(Layer.succeedContext(api)))
            )
          )
        )
      )
      yield* router.get(path, Effect.flatten(made))
    })
  )

export const layer: Layer.Layer<never, never, HttpApi.Api> = Layer.merge(
  later("/openapi.json", Effect.succeed(HttpApiBuilder.middlewareOpenApi({ path: "/openapi.json" }))),
  later(
    "/docs",
    Effect.map(
      Effect.promise(() => import("@effect/platform/HttpApiSwagger")),
      (Swagger) => Swagger.layer({ path: "/docs" })
    )
  )
)
