/**
 * The HTTP call of a job, as data (D37), or why there can be none.
 *
 * The path comes from any author of a job record, the base URL from the operator: whatever the path says, the call
 * must stay on the base URL's origin and below its path, and the token must never leave for anywhere else. So the path
 * is checked as text, and the resolved URL is checked again, because URL parsers are more forgiving than any list of
 * rules.
 */
import { Either } from "effect"
import * as JsonText from "../jsonText.ts"
import { shown } from "../shown.ts"
import type { Job } from "./job.ts"
import { readFor } from "./result.ts"

interface Backend {
  readonly baseUrl: string
  /** Bearer token. */
  readonly token: string | undefined
  readonly timeoutMs: number
  /** Longest answer that is kept as the job's result; 0 or absent keeps none. */
  readonly resultBytes?: number
}

export interface HttpCall {
  readonly url: string
  readonly headers: { readonly [name: string]: string }
  /** JSON text. */
  readonly body: string
  readonly timeoutMs: number
  /** Bytes of the answer's body to keep, at least; absent: as many as may be quoted. */
  readonly keptBytes?: number
}

/**
 * A segment that is `.` or `..` once decoded, however it is written; some servers cut what stands behind a `;` first
 * (`/..;/`).
 */
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

/** The URL a path leads to under a base URL; left: the path's fault. */
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

/** The text as a header can carry it: percent-encoded where it is not visible ASCII. */
export const headerText = (text: string): string =>
  text.replace(/[^\x21-\x24\x26-\x7e]+/g, (part) => encodeURIComponent(part.replace(lone, "\uFFFD")))

export const prepare = (
  job: Pick<Job, "id" | "path" | "payload" | "traceparent">,
  backend: Backend
): Either.Either<HttpCall, string> =>
  Either.map(resolve(backend.baseUrl, job.path), (url) => ({
    url,
    timeoutMs: backend.timeoutMs,
    keptBytes: readFor(backend.resultBytes ?? 0),
    body: JsonText.write(job.payload === undefined ? {} : job.payload),
    headers: {
      "content-type": "application/json",
      accept: "application/json, */*;q=0.5",
      "idempotency-key": headerText(job.id),
      ...(backend.token === undefined ? {} : { authorization: `Bearer ${backend.token}` }),
      ...(job.traceparent === undefined ? {} : { traceparent: job.traceparent })
    }
  }))
