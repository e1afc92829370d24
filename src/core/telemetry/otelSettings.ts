/**
 * The standard `OTEL_*` variables: which ones this service honours, the settings they give, and the warnings.
 *
 * Nothing is sent unless an endpoint is set or an exporter writes to the console. As the OpenTelemetry specification
 * asks, a value that makes no sense is a warning and never keeps the service from starting; a variable that is not
 * honoured is named, so that an operator does not wait for data that never arrive.
 */
import { type Signal, signals } from "./metrics.ts"

interface Variable {
  readonly name: string
  readonly defaultText: string
  readonly meaning: string
}

/**
 * Variables that are honoured, for documents. `<SIGNAL>` stands for TRACES, METRICS or LOGS, whose own variable wins
 * over the general one.
 */
export const variables: ReadonlyArray<Variable> = [
  { name: "OTEL_SDK_DISABLED", defaultText: "false", meaning: "`true` turns all of it off." },
  {
    name: "OTEL_EXPORTER_OTLP_ENDPOINT",
    defaultText: "unset: nothing is sent",
    meaning: "Collector's address, `http://collector:4318`; `/v1/traces`, `/v1/metrics` and `/v1/logs` are added."
  },
  {
    name: "OTEL_EXPORTER_OTLP_<SIGNAL>_ENDPOINT",
    defaultText: "from the general one",
    meaning: "Whole address for one signal, used as it is."
  },
  {
    name: "OTEL_EXPORTER_OTLP_HEADERS, OTEL_EXPORTER_OTLP_<SIGNAL>_HEADERS",
    defaultText: "none",
    meaning: "`name=value,name=value`, percent-encoded; never logged."
  },
  {
    name: "OTEL_EXPORTER_OTLP_PROTOCOL, OTEL_EXPORTER_OTLP_<SIGNAL>_PROTOCOL",
    defaultText: "http/protobuf",
    meaning: "`http/protobuf` or `http/json`; `grpc` is not supported."
  },
  {
    name: "OTEL_EXPORTER_OTLP_TIMEOUT, OTEL_EXPORTER_OTLP_<SIGNAL>_TIMEOUT",
    defaultText: "10000 ms",
    meaning: "After which a request has failed."
  },
  {
    name: "OTEL_<SIGNAL>_EXPORTER",
    defaultText: "otlp",
    meaning: "`otlp`, `none`, or `console` (one line of OTLP JSON on standard output)."
  },
  {
    name: "OTEL_SERVICE_NAME",
    defaultText: "surreal-live-sidecar-ssp, -scheduler",
    meaning: "Wins over `service.name` of OTEL_RESOURCE_ATTRIBUTES."
  },
  {
    name: "OTEL_RESOURCE_ATTRIBUTES",
    defaultText: "none",
    meaning: "`key=value,key=value`, percent-encoded; added to everything sent."
  },
  {
    name: "OTEL_TRACES_SAMPLER",
    defaultText: "parentbased_always_on",
    meaning: "`always_on`, `always_off`, `traceidratio`, each also with `parentbased_` before it."
  },
  { name: "OTEL_TRACES_SAMPLER_ARG", defaultText: "1", meaning: "Part of traces that `traceidratio` keeps, 0 to 1." },
  { name: "OTEL_METRIC_EXPORT_INTERVAL", defaultText: "60000 ms", meaning: "Time between two exports of metrics." },
  {
    name: "OTEL_BSP_SCHEDULE_DELAY, OTEL_BLRP_SCHEDULE_DELAY",
    defaultText: "5000 ms, 1000 ms",
    meaning: "Time between two exports of spans, of log records."
  },
  {
    name: "OTEL_BSP_MAX_EXPORT_BATCH_SIZE, OTEL_BLRP_MAX_EXPORT_BATCH_SIZE",
    defaultText: "512",
    meaning: "Spans, log records in one request."
  },
  {
    name: "OTEL_BSP_MAX_QUEUE_SIZE, OTEL_BLRP_MAX_QUEUE_SIZE",
    defaultText: "2048",
    meaning: "Spans, log records under way at most; what is beyond is dropped, and more for a minute."
  }
]

export interface Sending {
  readonly to:
    | {
        readonly kind: "otlp"
        readonly url: string
        readonly headers: { readonly [name: string]: string }
        readonly timeoutMs: number
      }
    | { readonly kind: "console" }
  readonly json: boolean
  readonly everyMs: number
  readonly batchSize: number
  /** Most batches in flight. */
  readonly maxBatches: number
}

export interface Sampler {
  readonly parentBased: boolean
  /** Share of the traces begun here that is kept, 0 to 1. */
  readonly ratio: number
}

export interface OtelSettings {
  readonly sending: { readonly [S in Signal]: Sending | undefined }
  readonly sampler: Sampler
  readonly serviceName: string | undefined
  readonly attributes: { readonly [name: string]: string }
  readonly warnings: ReadonlyArray<string>
}

export type Env = { readonly [name: string]: string | undefined }

class Reader {
  readonly warnings: Array<string> = []
  readonly used = new Set<string>()

  constructor(private readonly env: Env) {}

  text(name: string): string | undefined {
    this.used.add(name)
    const value = this.env[name]?.trim()
    return value === undefined || value === "" ? undefined : value
  }

  number(name: string, fallback: number, least: number, most: number): number {
    const value = this.text(name)
    if (value === undefined) return fallback
    const read = Number(value)
    if (/^\d+(?:\.\d+)?$/.test(value) && read >= least && read <= most) return read
    this.warnings.push(
      `${name} is ${JSON.stringify(value.slice(0, 40))}; must be a number from ${least} to ${most}, ${fallback} is used`
    )
    return fallback
  }

  choice<A extends string>(name: string, options: ReadonlyArray<A>, fallback: A): A {
    const value = this.text(name)
    const found = value === undefined ? fallback : options.find((option) => option === value.toLowerCase())
    if (found === undefined)
      this.warnings.push(
        `${name} is ${JSON.stringify(value?.slice(0, 40))}, which is not supported; must be one of ${options.join(", ")}, ${fallback} is used`
      )
    return found ?? fallback
  }

  /** `a=b,c=d`, percent-encoded; values may be secrets and are never shown. */
  pairs(name: string): { readonly [key: string]: string } {
    const pairs: Record<string, string> = {}
    for (const part of this.text(name)?.split(",") ?? []) {
      const at = part.indexOf("=")
      const key = part.slice(0, Math.max(0, at)).trim()
      try {
        if (key === "" || key === "__proto__") throw new URIError()
        pairs[decodeURIComponent(key)] = decodeURIComponent(part.slice(at + 1).trim())
      } catch {
        if (part.trim() !== "")
          this.warnings.push(`${name} holds an entry that is no percent-encoded name=value; it is left out`)
      }
    }
    return pairs
  }

  /** Value of a signal's own variable, else of the general one. */
  either<A>(signal: string, rest: string, read: (name: string) => A | undefined): A | undefined {
    this.used.add(`OTEL_EXPORTER_OTLP_${rest}`)
    return read(`OTEL_EXPORTER_OTLP_${signal}_${rest}`) ?? read(`OTEL_EXPORTER_OTLP_${rest}`)
  }
}

const hours = 24 * 3_600_000
const protocols = ["http/protobuf", "http/json"] as const

const isAddress = (text: string): boolean => /^https?:\/\//i.test(text) && URL.canParse(text)

const endpointOf = (read: Reader, signal: Signal): string | undefined => {
  const name = `OTEL_EXPORTER_OTLP_${signal.toUpperCase()}_ENDPOINT`
  const own = read.text(name)
  const general = read.text("OTEL_EXPORTER_OTLP_ENDPOINT")
  const url = own ?? (general === undefined ? undefined : `${general.replace(/\/+$/, "")}/v1/${signal}`)
  if (url === undefined || isAddress(url)) return url
  read.warnings.push(
    `${own === undefined ? "OTEL_EXPORTER_OTLP_ENDPOINT" : name} is no http:// or https:// address; ${signal} are not sent`
  )
  return undefined
}

/** Interval of exports, and sizes of batches. */
const paceOf = (read: Reader, signal: Signal): Pick<Sending, "everyMs" | "batchSize" | "maxBatches"> => {
  if (signal === "metrics")
    return { everyMs: read.number("OTEL_METRIC_EXPORT_INTERVAL", 60_000, 100, hours), batchSize: 1, maxBatches: 1 }
  const prefix = signal === "traces" ? "OTEL_BSP" : "OTEL_BLRP"
  const batchSize = read.number(`${prefix}_MAX_EXPORT_BATCH_SIZE`, 512, 1, 10_000)
  const queue = read.number(`${prefix}_MAX_QUEUE_SIZE`, 2048, 1, 1_000_000)
  return {
    everyMs: read.number(`${prefix}_SCHEDULE_DELAY`, signal === "traces" ? 5000 : 1000, 10, hours),
    batchSize,
    maxBatches: Math.max(1, Math.floor(queue / batchSize))
  }
}

const sendingOf = (read: Reader, signal: Signal): Sending | undefined => {
  const name = signal.toUpperCase()
  const variable = `OTEL_${name}_EXPORTER`
  const given = read.text(variable)
  const exporter =
    given?.toLowerCase() === "prometheus" && signal === "metrics"
      ? "none"
      : read.choice(variable, ["otlp", "none", "console"], "otlp")
  if (given?.toLowerCase() === "prometheus" && signal === "metrics")
    read.warnings.push(`${variable} is prometheus: metrics are always served at /metrics, no other port is opened`)
  const pace = paceOf(read, signal)
  const url = endpointOf(read, signal)
  const protocol =
    read.either(name, "PROTOCOL", (each) =>
      read.text(each) === undefined ? undefined : read.choice(each, protocols, "http/protobuf")
    ) ?? "http/protobuf"
  const headers = { ...read.pairs("OTEL_EXPORTER_OTLP_HEADERS"), ...read.pairs(`OTEL_EXPORTER_OTLP_${name}_HEADERS`) }
  const timeoutMs =
    read.either(name, "TIMEOUT", (each) =>
      read.text(each) === undefined ? undefined : read.number(each, 10_000, 1, 600_000)
    ) ?? 10_000
  if (exporter === "none") return undefined
  if (exporter === "console") return { to: { kind: "console" }, json: true, ...pace }
  if (url === undefined && given !== undefined)
    read.warnings.push(
      `${variable} is otlp, but no endpoint is set; ${signal} are not sent: set OTEL_EXPORTER_OTLP_ENDPOINT`
    )
  return url === undefined
    ? undefined
    : { to: { kind: "otlp", url, headers, timeoutMs }, json: protocol === "http/json", ...pace }
}

const samplers = [
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
  "always_on",
  "always_off",
  "traceidratio"
] as const

const samplerOf = (read: Reader): Sampler => {
  const name = read.choice("OTEL_TRACES_SAMPLER", samplers, "parentbased_always_on")
  const ratio = read.number("OTEL_TRACES_SAMPLER_ARG", 1, 0, 1)
  return {
    parentBased: name.startsWith("parentbased_"),
    ratio: name.endsWith("always_on") ? 1 : name.endsWith("always_off") ? 0 : ratio
  }
}

const off: OtelSettings = {
  sending: { traces: undefined, metrics: undefined, logs: undefined },
  sampler: { parentBased: true, ratio: 1 },
  serviceName: undefined,
  attributes: {},
  warnings: []
}

/**
 * Reads the settings from the environment. Warns about variables that begin with OTEL_ and are not honoured, if
 * anything is exported at all.
 */
export const read = (env: Env): OtelSettings => {
  const reader = new Reader(env)
  if (reader.text("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return off
  const sending = {
    traces: sendingOf(reader, "traces"),
    metrics: sendingOf(reader, "metrics"),
    logs: sendingOf(reader, "logs")
  }
  const sampler = samplerOf(reader)
  const { "service.name": named, ...attributes } = reader.pairs("OTEL_RESOURCE_ATTRIBUTES")
  const serviceName = reader.text("OTEL_SERVICE_NAME") ?? named
  const propagators = reader.text("OTEL_PROPAGATORS")
  if (
    propagators !== undefined &&
    !propagators.split(",").every((each) => ["tracecontext", "baggage"].includes(each.trim()))
  )
    reader.warnings.push("OTEL_PROPAGATORS: only tracecontext is supported (baggage is neither read nor sent)")
  const others = signals.some((signal) => sending[signal] !== undefined)
    ? Object.keys(env)
        .filter((name) => name.startsWith("OTEL_") && !reader.used.has(name))
        .sort()
    : []
  return {
    sending,
    sampler,
    serviceName,
    attributes,
    warnings: [
      ...new Set([
        ...reader.warnings,
        ...others.map((name) => `${name} is not supported by this service and is ignored`)
      ])
    ]
  }
}
