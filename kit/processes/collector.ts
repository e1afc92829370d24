/**
 * An OpenTelemetry collector for a test: takes OTLP/HTTP as JSON, remembers it, or misbehaves as it is told.
 *
 * Why a fake: what matters is what a service sends, and what it does when nobody takes it; a real collector shows
 * neither.
 */
import { createServer, type IncomingMessage, type Server } from "node:http"
import type { AddressInfo } from "node:net"
import { listen, shut } from "./listening.ts"

export interface SentSpan {
  readonly name: string
  readonly traceId: string
  readonly spanId: string
  readonly parentSpanId?: string
  readonly kind: number
  readonly links: ReadonlyArray<{ readonly traceId: string; readonly spanId: string }>
  /** Of the resource and the span, as text. */
  readonly attributes: { readonly [name: string]: unknown }
  readonly service: string
}

interface KeyValue {
  readonly key: string
  readonly value: { readonly [kind: string]: unknown }
}

interface Resource {
  readonly attributes: ReadonlyArray<KeyValue>
}

const attributesOf = (pairs: ReadonlyArray<KeyValue>): { readonly [name: string]: unknown } =>
  Object.fromEntries(pairs.map(({ key, value }) => [key, Object.values(value)[0]]))

type Json = { readonly [key: string]: unknown }

export class Collector {
  /** What came, by path. */
  readonly received: Array<{
    readonly path: string
    readonly headers: IncomingMessage["headers"]
    readonly body: Json
    readonly text: string
  }> = []
  answer: "ok" | "hang" | number = "ok"
  private readonly server: Server

  private constructor(server: Server) {
    this.server = server
    server.on("request", (request, response) => {
      const chunks: Array<Buffer> = []
      request.on("data", (chunk: Buffer) => void chunks.push(chunk))
      request.on("end", () => {
        const bytes = Buffer.concat(chunks)
        const text = bytes.toString("utf8")
        const body = request.headers["content-type"] === "application/json" ? (JSON.parse(text) as Json) : {}
        this.received.push({ path: request.url ?? "", headers: request.headers, body, text })
        if (this.answer !== "hang")
          response.writeHead(this.answer === "ok" ? 200 : this.answer, { "content-type": "application/json" }).end("{}")
      })
    })
  }

  static async start(): Promise<Collector> {
    const server = createServer()
    await listen(server)
    return new Collector(server)
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`
  }

  private scopes(
    path: string,
    resources: string,
    scopes: string,
    items: string
  ): ReadonlyArray<readonly [Resource, Json]> {
    return this.received
      .filter((each) => each.path === path)
      .flatMap(({ body }) =>
        ((body[resources] as ReadonlyArray<Json> | undefined) ?? []).flatMap((of) =>
          (of[scopes] as ReadonlyArray<Json>).flatMap((scope) =>
            (scope[items] as ReadonlyArray<Json>).map((item) => [of["resource"] as Resource, item] as const)
          )
        )
      )
  }

  get spans(): ReadonlyArray<SentSpan> {
    return this.scopes("/v1/traces", "resourceSpans", "scopeSpans", "spans").map(([resource, span]) => {
      const attributes = {
        ...attributesOf(resource.attributes),
        ...attributesOf(span["attributes"] as ReadonlyArray<KeyValue>)
      }
      return { ...(span as unknown as SentSpan), attributes, service: String(attributes["service.name"]) }
    })
  }

  /** Log records: their text and the service. */
  get logs(): ReadonlyArray<readonly [text: string, service: unknown]> {
    return this.scopes("/v1/logs", "resourceLogs", "scopeLogs", "logRecords").map(
      ([resource, record]) =>
        [String(Object.values(record["body"] as Json)[0]), attributesOf(resource.attributes)["service.name"]] as const
    )
  }

  /** The latest of each metric's points, by service and name. */
  get metrics(): ReadonlyMap<string, Json> {
    return new Map(
      this.scopes("/v1/metrics", "resourceMetrics", "scopeMetrics", "metrics").map(
        ([resource, metric]) =>
          [`${String(attributesOf(resource.attributes)["service.name"])} ${String(metric["name"])}`, metric] as const
      )
    )
  }

  async close(): Promise<void> {
    await shut(this.server)
  }
}
