/**
 * Sends spans, log records and figures over OTLP/HTTP, as JSON or protobuf, through Effect's OpenTelemetry module.
 *
 * A collector must never disturb the service: requests have a time limit, few run at once, further ones are dropped,
 * and a collector that refuses them is left alone for a minute. Only spans begun by the node's own code are sent, so no
 * library decides what leaves the process.
 */
import * as OtlpLogger from "@effect/opentelemetry/OtlpLogger"
import * as OtlpResource from "@effect/opentelemetry/OtlpResource"
import { layerJson, layerProtobuf, OtlpSerialization } from "@effect/opentelemetry/OtlpSerialization"
import * as OtlpTracer from "@effect/opentelemetry/OtlpTracer"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientError from "@effect/platform/HttpClientError"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { type Clock, Context, Duration, Effect, Exit, Layer, Logger, Option, Tracer } from "effect"
import type { Signal } from "../../core/telemetry/metrics.ts"
import type { OtelSettings, Sampler, Sending } from "../../core/telemetry/otelSettings.ts"
import * as Otlp from "../../core/telemetry/otlpMetrics.ts"
import * as Trace from "../../core/telemetry/traceContext.ts"
import { atEnd } from "../../ports/Front.ts"
import { Meters } from "../../ports/Meters.ts"
import { NodeFigures } from "../../ports/NodeFigures.ts"
import { Release } from "../../ports/Release.ts"
import { Tracing, type TracingShape } from "../../ports/Tracing.ts"
import { steadyOf } from "../../ports/Turn.ts"
import type { Identity } from "./telemetry.ts"

/** Time limit of the last requests at a stop. */
const farewell = Duration.seconds(1)
/** Interval of warnings about a collector that does not answer. */
const complainMs = 60_000

const serviceNameOf = ({ serviceName }: OtelSettings, { server }: Identity): string =>
  serviceName ?? `surreal-live-sidecar-${server}`

const resourceOf = (settings: OtelSettings, identity: Identity, serviceVersion: string) => ({
  serviceName: serviceNameOf(settings, identity),
  serviceVersion,
  attributes: { "service.instance.id": identity.id, ...settings.attributes }
})

/** An error that the exporter does not retry: it drops the batch and pauses for a minute. */
const given = (request: HttpClientRequest.HttpClientRequest, description: string) =>
  new HttpClientError.RequestError({ request, reason: "Encode", description })

/** Prints each request as one line instead of sending it. */
const toConsole = HttpClient.make((request) =>
  Effect.sync(() => {
    if (request.body._tag === "Uint8Array") process.stdout.write(`${new TextDecoder().decode(request.body.body)}\n`)
    return HttpClientResponse.fromWeb(request, new Response(null, { status: 200 }))
  })
)

/** The client of one signal: bounded in time and number; failures are counted and logged. */
const clientOf = (signal: Signal, { maxBatches, to }: Sending) =>
  Effect.gen(function* () {
    const { exportFailures } = yield* Meters
    const steady = steadyOf(yield* Effect.clock)
    const client = to.kind === "console" ? toConsole : yield* HttpClient.HttpClient
    let underWay = 0
    let complainedAt = Number.NEGATIVE_INFINITY
    const failed = (why: string): Effect.Effect<void> =>
      Effect.suspend(() => {
        exportFailures[signal].add()
        const now = steady()
        if (now - complainedAt < complainMs) return Effect.void
        complainedAt = now
        return Effect.logWarning(
          `the collector does not take ${signal} (${why}); they are dropped, the service goes on`
        )
      })
    return HttpClient.transform(client, (sending, request) =>
      Effect.suspend(() => {
        if (underWay >= maxBatches)
          return Effect.zipRight(
            failed(`${underWay} requests are unanswered`),
            Effect.fail(given(request, "too many requests are under way"))
          )
        underWay++
        return sending.pipe(
          Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
          Effect.timeoutFail({
            duration: Duration.millis(to.kind === "otlp" ? to.timeoutMs : 1000),
            onTimeout: () => given(request, "no answer in time")
          }),
          Effect.tapBoth({
            onFailure: (error) =>
              failed(error._tag === "RequestError" ? (error.description ?? error.reason) : error.message),
            onSuccess: ({ status }) => (status < 300 ? Effect.void : failed(`it answers ${status}`))
          }),
          Effect.ensuring(Effect.sync(() => void underWay--))
        )
      })
    )
  })

const withClient = <A, E, R>(signal: Signal, sending: Sending, effect: Effect.Effect<A, E, R>) =>
  Effect.flatMap(clientOf(signal, sending), (client) =>
    Effect.provideService(effect, HttpClient.HttpClient, client)
  ).pipe(
    Effect.provide(sending.json ? layerJson : layerProtobuf),
    Effect.provide(FetchHttpClient.layer),
    Effect.withTracerEnabled(false)
  )

const place = (sending: Sending) =>
  sending.to.kind === "otlp" ? { url: sending.to.url, headers: sending.to.headers } : { url: "console://" }

/** Whether a trace is sampled: by chance if it begins here, else as its first service decided. */
const isSampled = ({ parentBased, ratio }: Sampler, parent: Trace.TraceContext | undefined): boolean =>
  parent !== undefined && parentBased
    ? parent.sampled
    : parent !== undefined
      ? Number.parseInt(parent.traceId.slice(-8), 16) < ratio * 2 ** 32
      : ratio >= 1 || Math.random() < ratio

const external = ({ spanId, traceId }: Trace.TraceContext): Tracer.ExternalSpan =>
  Tracer.externalSpan({ spanId, traceId, sampled: true })

const tracingOf = (tracer: Tracer.Tracer, clock: Clock.Clock, sampler: Sampler): TracingShape => ({
  begin: (name, { attributes = {}, kind, links = [], parent }) => {
    const context = Trace.parse(parent)
    if (!isSampled(sampler, context)) return undefined
    const linked = links
      .flatMap((link) => Trace.parse(link) ?? [])
      .map((link): Tracer.SpanLink => ({ _tag: "SpanLink", span: external(link), attributes: {} }))
    const span = tracer.span(
      name,
      Option.map(Option.fromNullable(context), external),
      Context.empty(),
      linked,
      clock.unsafeCurrentTimeNanos(),
      kind
    )
    for (const [key, value] of Object.entries(attributes)) span.attribute(key, value)
    return {
      traceparent: Trace.write({ traceId: span.traceId, spanId: span.spanId, sampled: true }),
      end: (fault, more = {}) => {
        for (const [key, value] of Object.entries(more)) span.attribute(key, value)
        span.end(clock.unsafeCurrentTimeNanos(), fault === undefined ? Exit.void : Exit.fail(fault))
      }
    }
  }
})

const layerTraces = (settings: OtelSettings, identity: Identity, sending: Sending) =>
  Layer.scoped(
    Tracing,
    Effect.gen(function* () {
      const { version } = yield* Release
      const { batchSize: maxBatchSize, everyMs } = sending
      const options = {
        ...place(sending),
        resource: resourceOf(settings, identity, version),
        exportInterval: Duration.millis(everyMs),
        maxBatchSize,
        shutdownTimeout: farewell
      }
      return tracingOf(
        yield* withClient("traces", sending, OtlpTracer.make(options)),
        yield* Effect.clock,
        settings.sampler
      )
    })
  )

const layerLogs = (settings: OtelSettings, identity: Identity, sending: Sending) =>
  Logger.addScoped(
    Effect.gen(function* () {
      const { version } = yield* Release
      const { batchSize: maxBatchSize, everyMs } = sending
      return yield* withClient(
        "logs",
        sending,
        OtlpLogger.make({
          ...place(sending),
          resource: resourceOf(settings, identity, version),
          exportInterval: Duration.millis(everyMs),
          maxBatchSize,
          shutdownTimeout: farewell
        })
      )
    })
  )

export const layerOuter = (settings: OtelSettings, identity: Identity) => {
  const { logs, traces } = settings.sending
  return Layer.merge(
    traces === undefined ? Layer.empty : layerTraces(settings, identity, traces),
    logs === undefined ? Layer.empty : layerLogs(settings, identity, logs)
  )
}

/** Figures are read when they are sent; a request that fails is not repeated. */
export const layerMetrics = ({ sending: { metrics: sending }, ...rest }: OtelSettings, identity: Identity) =>
  sending === undefined
    ? Layer.empty
    : Layer.scopedDiscard(
        Effect.gen(function* () {
          const { version } = yield* Release
          const families = yield* NodeFigures
          const settings: OtelSettings = { ...rest, sending: { traces: undefined, logs: undefined, metrics: sending } }
          const resource = OtlpResource.make(resourceOf(settings, identity, version))
          const startTimeUnixNano = String((yield* Effect.clock).unsafeCurrentTimeNanos())
          const { headers, url } = { headers: {}, ...place(sending) }
          const send = withClient(
            "metrics",
            sending,
            Effect.gen(function* () {
              const client = HttpClient.filterStatusOk(yield* HttpClient.HttpClient)
              const serialization = yield* OtlpSerialization
              return Effect.gen(function* () {
                const data = Otlp.request(yield* families, resource, serviceNameOf(settings, identity), {
                  startTimeUnixNano,
                  timeUnixNano: String((yield* Effect.clock).unsafeCurrentTimeNanos())
                })
                yield* Effect.scoped(
                  Effect.asVoid(
                    client.execute(
                      HttpClientRequest.setBody(HttpClientRequest.post(url, { headers }), serialization.metrics(data))
                    )
                  )
                )
              }).pipe(
                Effect.ignore,
                Effect.catchAllDefect((defect) =>
                  Effect.logError("the figures could not be read for the collector", defect)
                ),
                Effect.withTracerEnabled(false)
              )
            })
          )
          const once = yield* send
          yield* Effect.addFinalizer(() => Effect.ignore(atEnd(once, farewell)))
          yield* Effect.forkScoped(
            Effect.forever(Effect.zipRight(Effect.sleep(Duration.millis(sending.everyMs)), once))
          )
        })
      )
