/**
 * The HTTP call of a job, as data (D37), or why there can be none.
 *
 * Any author of a job record chooses the path, the operator the base URL: whatever the path says, the call must stay on
 * the base URL's origin and below its path, so that the token is sent nowhere else. So the path is checked as text, and
 * the resolved URL is checked again, because URL parsers are more forgiving than any list of rules.
 */
import { Either } from "effect"
import * as JsonText from "../jsonText.ts"
import { shown } from "../shown.ts"
import type { Job } from "./job.ts"
import { bytesToRead } from "./result.ts"

interface Backend {
  readonly baseUrl: string
  /** Bearer token. */
  readonly token: string | undefined
  readonly timeoutMs: number
  /** Longest answer stored as the job's result, in bytes; 0 or absent stores none. */
  readonly resultBytes?: number
}

export interface HttpCall {
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  /** JSON text. */
  readonly body: string
  readonly timeoutMs: number
  /** Bytes of the answer's body that the result needs; absent: only what an error may quote. */
  readonly keptBytes?: number
}

/** A segment that decodes to `.` or `..`, in any notation; some servers first cut the text after a `;` (`/..;/`). */
const dots = /^(?:\.|%2e){1,2}(?:(?:;|%3b).*)?$/is
const control = /[\u0000-\u001F\u007F-\u009F\u2028\u2029]/

/** Half of a surrogate pair. */
const lone = /[\uD800-\uDBFF](?![\uDC00-\uDFFF])|(?<![\uD800-\uDBFF])[\uDC00-\uDFFF]/g

const pathFault = (path: string): string | undefined => {
  if (path === "") return "is empty"
  if (!path.startsWith("/")) return "does not start with /"
  if (path.startsWith("//")) return "starts with //, which names another host"
  if (path.includes("\\")) return "holds a backslash"
  if (path.includes("#")) return "holds a #"
  if (control.test(path)) return "holds a control character"
  if (/%(?:5c|2f|0[0-9a-f]|1[0-9a-f]|7f)/i.test(path.split("?", 1)[0]!))
    return "holds an encoded slash, backslash or control character"
  if (path.search(lone) >= 0) return "is not well-formed text"
  if (
    path
      .split("?", 1)[0]!
      .split("/")
      .some((segment) => dots.test(segment))
  )
    return "holds a dot segment"
  return undefined
}

const withoutSlash = (text: string): string => text.replace(/\/+$/, "")

/** The URL of a path under a base URL; Left: the fault of the path. */
export const resolve = (baseUrl: string, path: string): Either.Either<string, string> => {
  const fault = pathFault(path)
  if (fault !== undefined) return Either.left(`the path ${shown(path)} ${fault}`)
  if (!URL.canParse(baseUrl)) return Either.left("the backend's base URL is not a URL")
  const base = new URL(baseUrl)
  const prefix = withoutSlash(base.pathname)
  const text = `${base.origin}${prefix}${path}`
  if (base.origin === "null" || !URL.canParse(text))
    return Either.left(`the path ${shown(path)} makes no URL with the backend's base URL`)
  const url = new URL(text)
  const inside = url.pathname === prefix || url.pathname.startsWith(`${prefix}/`)
  if (url.origin !== base.origin || !inside || url.username !== "" || url.password !== "" || url.hash !== "")
    return Either.left(`the path ${shown(path)} leads away from the backend's base URL`)
  return Either.right(url.href)
}

/** A text in the form of a header value: percent-encoded except for visible ASCII. */
export const headerText = (text: string): string =>
  text.replace(/[^\x21-\x24\x26-\x7e]+/g, (part) => encodeURIComponent(part.replace(lone, "\uFFFD")))

export const prepare = (
  job: Pick<Job, "id" | "path" | "payload" | "traceparent">,
  backend: Backend
): Either.Either<HttpCall, string> =>
  Either.map(resolve(backend.baseUrl, job.path), (url) => ({
    url,
    timeoutMs: backend.timeoutMs,
    keptBytes: bytesToRead(backend.resultBytes ?? 0),
    body: JsonText.write(job.payload === undefined ? {} : job.payload),
    headers: {
      "content-type": "application/json",
      accept: "application/json, */*;q=0.5",
      "idempotency-key": headerText(job.id),
      ...(backend.token === undefined ? {} : { authorization: `Bearer ${backend.token}` }),
      ...(job.traceparent === undefined ? {} : { traceparent: job.traceparent })
    }
  }))
