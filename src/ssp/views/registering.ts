/**
 * What becomes of a registration: the row that is stored, and the instance its query stands for.
 */
import { Either } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import type { View } from "../../core/ivm/view/view.ts"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import { parseSelect, place } from "../../core/surql/syntax/parse.ts"
import * as Json from "../../core/surql/values/json.ts"
import { setField, type Value } from "../../core/surql/values/value.ts"
import type { StoredView } from "../../ports/Database.ts"
import type { WatchdogShape } from "../../ports/Watchdog.ts"
import { formatText } from "./registry.ts"
import { QueryRefused, type ViewRegistration } from "./viewTypes.ts"

/** Parameters of a query as JSON. */
export type JsonParams = { readonly [name: string]: unknown } | null

/** Reads the request's JSON parameters by rule 3 of D1. */
const typedParams = (params: JsonParams): { readonly [name: string]: Value } => {
  const typed: Record<string, Value> = {}
  for (const name of Object.keys(params ?? {})) setField(typed, name, Json.fromJson(params?.[name]))
  return typed
}

/** Texts kept parsed. */
const maxParsed = 1_000

/**
 * Queries by text: many views are registered with one text and other parameters, and the engine lifts a parsed query
 * once.
 */
export class ParsedQueries {
  private readonly byText = new Map<string, ReturnType<typeof parseSelect>>()

  parse(surql: string): ReturnType<typeof parseSelect> {
    const known = this.byText.get(surql)
    if (known !== undefined) return known
    const parsed = parseSelect(surql)
    const [oldest] = this.byText.keys()
    if (this.byText.size >= maxParsed && oldest !== undefined) this.byText.delete(oldest)
    this.byText.set(surql, parsed)
    return parsed
  }
}

/** What fills views. */
export interface Filling {
  readonly engine: Engine
  readonly queries: ParsedQueries
  /** Told which view is evaluated. */
  readonly watchdog: Pick<WatchdogShape, "evaluating" | "open">
}

/** Fills the instance of a view's query, with pauses in which changes may be applied. */
export function* acquire(
  { engine, queries, watchdog }: Filling,
  { id, params, surql }: Pick<ViewRegistration, "id" | "surql" | "params">,
  generation = 1
): Slices<Either.Either<View, QueryRefused>> {
  const slot = watchdog.open({ id, surql, params: JSON.stringify(params) })
  const parsed = watchdog.evaluating.during(slot, () => queries.parse(surql))
  if (Either.isLeft(parsed)) {
    watchdog.evaluating.close(slot)
    return Either.left(
      new QueryRefused({ message: parsed.left.message, line: parsed.left.line, column: parsed.left.column })
    )
  }
  const acquired = yield* engine.acquireSliced(parsed.right, typedParams(params), generation, slot)
  return Either.mapLeft(
    acquired,
    (refused) => new QueryRefused({ message: refused.reason, ...place(surql, refused.at) })
  )
}

/** The registration that is stored, as what is filled. */
export const queryOf = ({ id, params, surql }: StoredView): Pick<ViewRegistration, "id" | "surql" | "params"> => ({
  id,
  surql,
  params: JSON.parse(params) as JsonParams
})

export const storedOf = (registration: ViewRegistration, key: string): StoredView => ({
  key,
  id: registration.id,
  surql: registration.surql,
  clientId: registration.clientId,
  ttlMs: registration.ttlMs,
  params: JSON.stringify(registration.params),
  format: formatText(registration.format),
  lastActiveAtMs: registration.lastActiveAtMs
})
