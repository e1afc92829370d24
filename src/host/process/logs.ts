/**
 * Log lines on standard output: JSON for machines, text for people.
 *
 * One line a record either way, so that a line-wise collector keeps records whole; several lines only if a person reads
 * a cause on a terminal.
 */
import { Cause, HashMap, Inspectable, Layer, Logger, LogLevel, Option } from "effect"
import { terminal } from "./terminalBar.ts"

export type Format = "json" | "text"
export type Level = "error" | "warn" | "info" | "debug" | "trace"

const minimum: { readonly [L in Level]: LogLevel.LogLevel } = {
  error: LogLevel.Error,
  warn: LogLevel.Warning,
  info: LogLevel.Info,
  debug: LogLevel.Debug,
  trace: LogLevel.Trace
}

const nameOf = (level: LogLevel.LogLevel): string => (level._tag === "Warning" ? "warn" : level._tag.toLowerCase())

const textOf = (message: unknown): string =>
  Array.isArray(message) ? message.map(Inspectable.toStringUnknown).join(" ") : Inspectable.toStringUnknown(message)

const causeOf = (cause: Cause.Cause<unknown>): string | undefined =>
  Cause.isEmpty(cause) ? undefined : Cause.pretty(cause, { renderErrorCause: true })

const json = Logger.make<unknown, string>(({ annotations, cause, date, logLevel, message }) =>
  Inspectable.stringifyCircular({
    time: date.toISOString(),
    level: nameOf(logLevel),
    message: textOf(message),
    ...Object.fromEntries(
      HashMap.toEntries(annotations).filter(([key]) => !["time", "level", "message", "cause"].includes(key))
    ),
    ...Option.match(Option.fromNullable(causeOf(cause)), { onNone: () => ({}), onSome: (text) => ({ cause: text }) })
  })
)

/** Control characters would let a logged text pretend to be another line. */
const oneLine = (text: string): string => text.replace(/[\u0000-\u001f\u007f]/g, (c) => JSON.stringify(c).slice(1, -1))

/** Quotes a value that could pass for the next key. */
const valueOf = (value: unknown): string => {
  const shown = Inspectable.toStringUnknown(value, 0)
  return (typeof value === "string" && /[\s"=]/.test(shown)) || shown === "" ? JSON.stringify(shown) : oneLine(shown)
}

const text = Logger.make<unknown, string>(({ annotations, cause, date, logLevel, message }) => {
  const extra = HashMap.toEntries(annotations)
    .map(([key, value]) => ` ${key}=${valueOf(value)}`)
    .join("")
  const pretty = causeOf(cause)
  return `${date.toTimeString().slice(0, 8)} ${nameOf(logLevel).padEnd(5)} ${oneLine(textOf(message))}${extra}${pretty === undefined ? "" : `\n${pretty}`}`
})

/** A record as one line. */
export const lines: { readonly [F in Format]: Logger.Logger<unknown, string> } = { json, text }

/** `format` undefined: text if standard output is a terminal, else JSON. */
export const layer = (format: Format | undefined, level: Level): Layer.Layer<never> => {
  const chosen = lines[format ?? (process.stdout.isTTY ? "text" : "json")]
  const written = Logger.map(chosen, (line) => terminal.above(() => void process.stdout.write(`${line}\n`)))
  return Layer.merge(Logger.replace(Logger.defaultLogger, written), Logger.minimumLogLevel(minimum[level]))
}
