/**
 * The dashboard's files, read from beside this one, and the plot library's from its package.
 *
 * Read once at the start: they are small, and the served pages must not change while the process runs. A build without
 * them logs that and serves none.
 */

import { createHash } from "node:crypto"
import { readdirSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { Effect, Layer } from "effect"
import { type Page, Pages } from "../ports/Pages.ts"

const types: { readonly [ending: string]: string } = {
  html: "text/html; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  css: "text/css; charset=utf-8",
  svg: "image/svg+xml"
}

const endingOf = (name: string): string => name.slice(name.lastIndexOf(".") + 1)

const page = (path: string, name: string, body: Uint8Array): Page => ({
  path,
  contentType: types[endingOf(name)] ?? "application/octet-stream",
  body,
  etag: `"${createHash("sha256").update(body).digest("base64url").slice(0, 22)}"`
})

const own = (): ReadonlyArray<Page> => {
  const folder = new URL("../dashboard/", import.meta.url)
  const files = readdirSync(folder)
    .filter((name) => types[endingOf(name)] !== undefined)
    .map((name) => page(name === "index.html" ? "/" : `/dashboard/${name}`, name, readFileSync(new URL(name, folder))))
  // Browsers request this icon on every page that names none, such as `/docs`.
  return [...files, page("/favicon.ico", "icon.svg", readFileSync(new URL("icon.svg", folder)))]
}

const library = (): ReadonlyArray<Page> => {
  const { resolve } = createRequire(import.meta.url)
  return [
    ["uPlot.js", "uplot/dist/uPlot.iife.min.js"],
    ["uPlot.css", "uplot/dist/uPlot.min.css"]
  ].map(([name, file]) => page(`/dashboard/${name}`, name!, readFileSync(resolve(file!))))
}

export const layer: Layer.Layer<never> = Layer.effect(
  Pages,
  Effect.try(() => [...own(), ...library()]).pipe(
    Effect.catchAll(({ error }) =>
      Effect.as(
        Effect.logWarning(
          `no dashboard is served, its files are not there: ${error instanceof Error ? error.message : String(error)}`
        ),
        []
      )
    )
  )
)
