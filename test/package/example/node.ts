/**
 * An SSP of your own: it keeps what it has in a journal, a line per commit, and answers one route more, a view as CSV.
 *
 * Everything else is the package's: a port that is merged behind the others takes their place, a route is added to the
 * router.
 */

import { Buffer } from "node:buffer"
import * as fs from "node:fs"
import process from "node:process"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpRouter from "@effect/platform/HttpRouter"
import * as HttpServerRequest from "@effect/platform/HttpServerRequest"
import * as HttpServerResponse from "@effect/platform/HttpServerResponse"
import { Effect, Layer } from "effect"
import * as Encode from "surreal-live-sidecar/core/surql/values/encode"
import * as Ids from "surreal-live-sidecar/core/surql/values/recordId"
import * as Server from "surreal-live-sidecar/host/http/Server"
import * as Logs from "surreal-live-sidecar/host/process/logs"
import * as Process from "surreal-live-sidecar/host/process/Process"
import { makeSecretFinder } from "surreal-live-sidecar/node/http/bearer"
import { type Commit, Database } from "surreal-live-sidecar/ports/Database"
import { Serving } from "surreal-live-sidecar/ports/Front"
import { SspConfig } from "surreal-live-sidecar/ssp/Config"
import * as Memory from "surreal-live-sidecar/ssp/Memory"
import * as Ssp from "surreal-live-sidecar/ssp/Ssp"
import { Views } from "surreal-live-sidecar/ssp/views/Views"

/** A commit as a line: ids and values as the text that gives them back with their types. */
const write = ({ records, ...rest }: Commit) =>
  JSON.stringify({
    ...rest,
    records: records.map(({ doc, id, version }) => [id.text, version, doc && Encode.encode(doc)])
  })
const read = (line: string): Commit => {
  const { records, ...rest } = JSON.parse(line)
  return {
    ...rest,
    records: records.map(([id, version, doc]: [string, number, string | null]) => ({
      id: Ids.parse(id),
      version,
      doc: doc ? Encode.decode(doc) : undefined
    }))
  }
}

/** The store: the one in memory, and a journal that fills it again. A line that a crash cut off was never answered. */
const journal = (file: string) =>
  Layer.effect(
    Database,
    Effect.gen(function* () {
      const memory = yield* Database
      const handle = fs.openSync(file, "a+")
      const text = fs.readFileSync(file, "utf8")
      const whole = text.slice(0, text.lastIndexOf("\n") + 1)
      fs.ftruncateSync(handle, Buffer.byteLength(whole))
      for (const line of whole.split("\n").slice(0, -1)) yield* memory.commit(read(line))
      const append = (line: string) =>
        Effect.sync(() => {
          fs.writeSync(handle, line)
          fs.fsyncSync(handle)
        })
      return {
        ...memory,
        kind: "journal",
        commit: (commit) => Effect.zipRight(append(`${write(commit)}\n`), memory.commit(commit)),
        reset: Effect.zipRight(
          Effect.sync(() => fs.ftruncateSync(handle)),
          memory.reset
        )
      }
    })
  ).pipe(Layer.provide(Database.layerMemory))

/** The route: the rows of a view, a line each, for callers with a secret of the scope `read`. */
const csv = HttpApiBuilder.Router.use((router) =>
  Effect.gen(function* () {
    const views = yield* Views
    const findSecret = makeSecretFinder((yield* SspConfig).bearers)
    yield* router.get(
      "/csv/:id",
      Effect.gen(function* () {
        const { headers } = yield* HttpServerRequest.HttpServerRequest
        if (!findSecret(headers["authorization"])?.scopes.includes("read"))
          return HttpServerResponse.empty({ status: 401 })
        const { result_data } = yield* views.read((yield* HttpRouter.params)["id"] ?? "", "tree")
        const lines = (result_data as ReadonlyArray<object>).map((row) =>
          Object.values(row)
            .map((value) => JSON.stringify(value))
            .join(",")
        )
        return HttpServerResponse.text(lines.join("\n"), { contentType: "text/csv" })
      }).pipe(Effect.catchTag("ViewNotFound", () => HttpServerResponse.empty({ status: 404 })))
    )
  })
)

const ports = Layer.mergeAll(Memory.ports(process.env), journal(process.env["JOURNAL"] ?? "journal.jsonl"))
/** Log lines as `SVC_LOG_FORMAT` and `SVC_LOG_LEVEL` have them. Without this layer the program's own logger writes. */
const logs = Layer.unwrapEffect(Effect.map(SspConfig, ({ logFormat, logLevel }) => Logs.layer(logFormat, logLevel)))
const server = Layer.unwrapEffect(
  Effect.map(SspConfig, (config) => Server.layer({ ...config, ...config.listen, setting: "LISTEN_ADDR" }))
)

Process.run(
  Effect.flatMap(Serving, ({ crashed }) => crashed).pipe(
    Effect.provide(
      server.pipe(Layer.provide(csv), Layer.provideMerge(Ssp.layer), Layer.provide(logs), Layer.provideMerge(ports))
    )
  )
)
