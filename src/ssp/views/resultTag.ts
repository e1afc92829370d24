/**
 * The entity tag of a view's result (RFC 9110, 8.8.3); a reader that has the result is answered 304.
 *
 * Made of all parts of the answer's body but the id, which the path names. A result with `errors` has no tag: its hash
 * does not cover them.
 */
import type { ViewAnswer } from "../viewTypes.ts"

type Tagged = Pick<ViewAnswer, "content_generation" | "errors" | "format" | "result_hash">

export const tagOf = ({ content_generation, errors, format, result_hash }: Tagged): string | undefined =>
  errors === undefined ? `"${content_generation}-${result_hash}-${format}"` : undefined

/** Whether `If-None-Match` names the tag. */
export const namesTag = (ifNoneMatch: string | undefined, tag: string | undefined): boolean =>
  ifNoneMatch !== undefined &&
  tag !== undefined &&
  ifNoneMatch.split(",").some((one) => one.trim().replace(/^W\//, "") === tag || one.trim() === "*")

/** Headers of an answer with a result: caches must revalidate, and store it for this reader alone. */
export const headersOf = (tag: string | undefined): { readonly [name: string]: string } =>
  tag === undefined ? { "cache-control": "private, no-cache" } : { "cache-control": "private, no-cache", etag: tag }
