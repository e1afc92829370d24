/**
 * Bodies and paths of both servers: bounded JSON whatever the content type says; exact paths; every failure answered.
 */
import type * as HttpApp from "@effect/platform/HttpApp"
import * as HttpRouter from "@effect/platform/HttpRouter"
import { Effect, Either } from "effect"
import * as JsonText from "../../core/jsonText.ts"
import * as Answers from "./answers.ts"

/** Parses a body as JSON: checks its depth, keeps integers exact. */
export const parseJson = (text: string): Either.Either<unknown, ReturnType<typeof Answers.invalidRequest>> => {
  try {
    return Either.right(JsonText.parse(text, JsonText.maxDepth))
  } catch (error) {
    if (error instanceof JsonText.TooDeep) return Either.left(Answers.tooDeep)
    if (error instanceof JsonText.NumberRefused)
      return Either.left(Answers.invalidRequest([{ path: error.path, reason: error.reason }]))
    const reason =
      text.trim() === ""
        ? "is empty; must be JSON"
        : `is not JSON: ${error instanceof Error ? error.message.slice(0, 200) : ""}`
    return Either.left(Answers.invalidRequest([{ path: "", reason }]))
  }
}

interface Group {
  readonly endpoints: { readonly [name: string]: { readonly method: string; readonly path: string } }
}

const pages = ["/openapi.json", "/docs"]

/** Methods of a path, for the answer to any other; `more`: paths of pages besides the Api's. */
export const methodsByPath = (
  api: { readonly groups: { readonly [name: string]: Group } },
  more: ReadonlyArray<string> = []
): ((path: string) => ReadonlyArray<string>) => {
  const routes = [
    ...Object.values(api.groups).flatMap((group) =>
      Object.values(group.endpoints).map((endpoint) => [endpoint.method, endpoint.path] as const)
    ),
    ...[...pages, ...more].map((path) => ["GET", path.replace(/\./g, "\\.")] as const)
  ].map(([method, path]) => [method, new RegExp(`^${path.replace(/:[a-z_]+/g, "[^/]+")}$`)] as const)
  return (path) => {
    const methods = routes.filter(([, pattern]) => pattern.test(path)).map(([method]) => method)
    return methods.includes("GET") ? [...methods, "HEAD"] : methods
  }
}

/** Exact paths; a view id may be long. */
export const routerConfig = {
  caseSensitive: true,
  ignoreTrailingSlash: false,
  ignoreDuplicateSlashes: false,
  maxParamLength: 16_384
}

export const layerRouting = HttpRouter.setRouterConfig(routerConfig)

/** Answers every failure that is left; see {@link Answers.answerCause}. */
export const answerEverything =
  (allow: (path: string) => ReadonlyArray<string>) =>
  (app: HttpApp.Default): HttpApp.Default =>
    Effect.catchAllCause(app, (cause) => Answers.answerCause(cause, allow))
