/**
 * The handler's requests to the SSP or the scheduler, with the secret: registering a view, and getting a token for it.
 *
 * The page gets an error of the service only if that helps it. Whatever names the query, the secret or the address goes
 * to the operator.
 */
import { Either, Schema } from "effect"
import * as JsonText from "../core/jsonText.ts"
import * as Errors from "../protocol/errors.ts"

/** The parts of the runtime that the handler uses. */
export interface World {
  readonly fetch: (address: string, init: RequestInit) => Promise<Response>
  /** Unix time in milliseconds. */
  readonly now: () => number
  /** Writes one line for the operator. */
  readonly say: (line: string) => void
}

/** An error answer to the page. */
export interface Refusal {
  readonly status: number
  readonly code: Errors.Code
  readonly message: string
  readonly details?: unknown
  readonly retryAfterMs?: number
}

/** Makes an error answer. */
export const refusal = (code: Errors.Code, message: string, more: Partial<Refusal> = {}): Refusal => ({
  status: Errors.statusOf[code],
  code,
  message,
  ...more
})

/** The SSP or scheduler that the handler calls. */
export interface Service {
  readonly world: World
  readonly url: string
  readonly secret: () => string | Promise<string>
  readonly timeoutMs: number
}

/** A view to register. */
export interface ViewToRegister {
  readonly id: string
  readonly surql: string
  readonly params: { readonly [name: string]: unknown }
  readonly clientId: string
  readonly ttl: string
}

const TokenGiven = Schema.Struct({ token: Schema.NonEmptyString, expires_in_ms: Schema.Positive })
const ErrorBody = Schema.Struct({ code: Schema.String, message: Schema.String })

/** Errors of the service that pass: the page retries. */
const passing: ReadonlySet<string> = new Set<Errors.Code>([
  "SSP_NOT_READY",
  "SCHEDULER_CLONING",
  "NO_SSP_AVAILABLE",
  "OVERLOADED",
  "RATE_LIMITED"
])
/** Errors of the view itself, which no retry cures. */
const lasting: { readonly [code: string]: string } = {
  INVALID_QUERY: "the service does not take the query of this view; the application's log says why",
  VIEW_QUARANTINED: "the service has set the query of this view aside"
} satisfies { readonly [C in Errors.Code]?: string }

const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error))

/** Reads an error answer of the service. */
const refusedBy = async (service: Service, path: string, answer: Response): Promise<Refusal> => {
  const text = await answer.text()
  let code = ""
  let message = text.slice(0, 200)
  try {
    const read = Schema.decodeUnknownEither(ErrorBody)(JSON.parse(text))
    if (Either.isRight(read)) ({ code, message } = read.right)
  } catch {
    // The body is not the service's, so only the status is reported.
  }
  service.world.say(`${service.url}${path} answers ${answer.status} ${code}: ${message}`)
  const seconds = Number(answer.headers.get("retry-after") ?? Number.NaN)
  const more = seconds >= 0 ? { retryAfterMs: seconds * 1000 } : {}
  if (passing.has(code)) return refusal(code as Errors.Code, "the service cannot take the view now", more)
  const why = Object.hasOwn(lasting, code) ? lasting[code] : undefined
  if (why !== undefined) return refusal(code as Errors.Code, why)
  if (answer.status === 429 || answer.status === 503)
    return refusal("OVERLOADED", "the service cannot take the view now", more)
  return refusal("SSP_UNREACHABLE", "the service does not give the view; the application's log says why")
}

const post = async (service: Service, path: string, body: object): Promise<Response | Refusal> => {
  try {
    const answer = await service.world.fetch(service.url + path, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${await service.secret()}` },
      body: JsonText.write(body),
      // The secret goes to the configured address and to no other.
      redirect: "error",
      signal: AbortSignal.timeout(service.timeoutMs)
    })
    return answer.ok ? answer : await refusedBy(service, path, answer)
  } catch (error) {
    service.world.say(`${service.url}${path} cannot be reached: ${textOf(error)}`)
    return refusal("SSP_UNREACHABLE", "the service cannot be reached")
  }
}

/** Registers a view, or renews its lifetime. Answers the refusal, if there is one. */
export const register = async (service: Service, view: ViewToRegister): Promise<Refusal | undefined> => {
  const answer = await post(service, "/view/register", { ...view, format: "tree" })
  if (!(answer instanceof Response)) return answer
  // The page gets the result over the stream, so the body is not read.
  await answer.body?.cancel()
  return undefined
}

/** Gets a token for a view, or the refusal. */
export const tokenFor = async (
  service: Service,
  asked: { readonly views: ReadonlyArray<string>; readonly subject: string; readonly ttl_ms: number }
): Promise<Refusal | typeof TokenGiven.Type> => {
  const answer = await post(service, "/view/token", asked)
  if (!(answer instanceof Response)) return answer
  const read = Schema.decodeUnknownEither(TokenGiven)(await answer.json().catch(() => undefined))
  if (Either.isRight(read)) return read.right
  service.world.say(`${service.url}/view/token answers no token; is the service too old, or is this not its address?`)
  return refusal("SSP_UNREACHABLE", "the service does not give the view; the application's log says why")
}
