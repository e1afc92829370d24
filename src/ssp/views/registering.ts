/**
 * From a registration to its stored row, and to the instance of its query.
 */
import { Effect, Either } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import type { View } from "../../core/ivm/view/view.ts"
import * as JsonText from "../../core/jsonText.ts"
import { Recent } from "../../core/recent.ts"
import { compile, run } from "../../core/surql/evaluate/evaluate.ts"
import { makeBudget, type Slices } from "../../core/surql/evaluate/scope.ts"
import { analyze } from "../../core/surql/syntax/analyze.ts"
import type { Select } from "../../core/surql/syntax/ast.ts"
import type { Definitions, FunctionDefinition } from "../../core/surql/syntax/definitions.ts"
import { lineAndColumn, type ParseError, parseSelect, parseStatements } from "../../core/surql/syntax/parse.ts"
import * as Json from "../../core/surql/values/json.ts"
import { setField, type Value } from "../../core/surql/values/value.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { StoredView } from "../../ports/Database.ts"
import type { WatchdogShape } from "../../ports/Watchdog.ts"
import { QueryRefused, type ViewRegistration } from "../viewTypes.ts"
import { formatText } from "./registry.ts"
import type { TooLargeCheck } from "./viewLimits.ts"

/** Parameters of a query as JSON. */
export type JsonParams = { readonly [name: string]: unknown } | null

/** Number of parsed queries kept. */
const maxParsed = 1_000

/** A parsed query, and the database's definitions that it uses. */
interface Parsed {
  readonly select: Select
  /** Parameters that the query and its functions name. */
  readonly params: ReadonlyArray<string>
  /** Definitions of its functions. */
  readonly functions: ReadonlyArray<FunctionDefinition>
}

/**
 * Parsed queries by text: many views share a text and differ in parameters, and the engine lifts a parsed query once.
 * The database's definitions, if any, are inlined (D58).
 */
export class ParsedQueries {
  private readonly byText = new Recent<string, Either.Either<Parsed, ParseError>>(maxParsed)
  private definitions: Definitions | undefined

  /** Sets the definitions; all queries are parsed again. */
  define(definitions: Definitions): void {
    this.definitions = definitions
    this.byText.clear()
  }

  parse(surql: string): Either.Either<Parsed, ParseError> {
    const known = this.byText.get(surql)
    if (known !== undefined) return known
    const { definitions } = this
    const used = new Set<FunctionDefinition>()
    const inlining = definitions && { definitions, used, within: [], length: 0 }
    const parsed = Either.map(parseSelect(surql, inlining), (select) => ({
      select,
      params: definitions === undefined ? [] : analyze(select).params,
      functions: [...used]
    }))
    this.byText.set(surql, parsed)
    return parsed
  }

  /** The database's value of a parameter that the registration does not give; left: why it cannot be used. */
  private valueOf(name: string): Either.Either<Value, string> | undefined {
    const definition = this.definitions?.params.get(name)
    if (definition === undefined) return undefined
    if (!definition.open) return Either.left("PERMISSIONS of its definition keep it from some users")
    return Either.mapLeft(constantOf(definition.value), (why) => `its value cannot be read: ${why}`)
  }

  /** The registration's parameters and those that the database defines; left: why one cannot be used. */
  paramsOf({ params }: Parsed, given: JsonParams): Either.Either<{ readonly [name: string]: Value }, string> {
    // Typed by rule 3 of D1.
    const typed: Record<string, Value> = {}
    for (const name of Object.keys(given ?? {})) setField(typed, name, Json.fromJson(given?.[name]))
    for (const name of params) {
      const found = Object.hasOwn(typed, name) ? undefined : this.valueOf(name)
      if (found === undefined) continue
      if (Either.isLeft(found)) return Either.left(`the parameter \`$${name}\` cannot be used: ${found.left}`)
      setField(typed, name, found.right)
    }
    return Either.right(typed)
  }

  /** Key of the definitions that a query uses: equal keys mean equal plans of the query. Empty if it uses none. */
  usesOf({ params, surql }: Pick<ViewRegistration, "surql" | "params">): string {
    const parsed = this.parse(surql)
    if (Either.isLeft(parsed)) return `refused: ${parsed.left.message}`
    const defined = parsed.right.params.flatMap((name) =>
      Object.hasOwn(params ?? {}, name) ? [] : (this.definitions?.params.get(name) ?? [])
    )
    const { functions } = parsed.right
    return functions.length + defined.length === 0 ? "" : JSON.stringify([functions, defined])
  }
}

/** Parses a value as the database writes it. */
const constantOf = (text: string): Either.Either<Value, string> => {
  const parsed = parseStatements(`RETURN ${text}`)
  if (Either.isLeft(parsed)) return Either.left(parsed.left.message)
  const [statement] = parsed.right
  if (parsed.right.length !== 1 || statement?.kind !== "return") return Either.left("it is no value")
  const nowhere = { record: () => undefined, rows: () => [], edges: () => [] }
  const scope = { doc: undefined, params: {}, parent: undefined, source: nowhere, budget: makeBudget(100_000, "none") }
  return Either.mapLeft(run(compile(statement.value), scope), ({ reason }) => reason)
}

/** The parts that fill a view. */
export interface FillContext {
  readonly engine: Engine
  readonly queries: ParsedQueries
  /** Notes which view is being evaluated. */
  readonly watchdog: Pick<WatchdogShape, "evaluating" | "open" | "queryOf">
}

/** Fills the instance of a view's query, with pauses in which changes may be applied. */
export function* acquire(
  { engine, queries, watchdog }: FillContext,
  { id, params, surql }: Pick<ViewRegistration, "id" | "surql" | "params">,
  generation = 1,
  needsRoom = false
): Slices<Either.Either<View, QueryRefused>> {
  const slot = watchdog.open({ id, surql, params: JsonText.write(params) })
  const parsed = watchdog.evaluating.during(slot, () => queries.parse(surql))
  if (Either.isLeft(parsed)) {
    watchdog.evaluating.close(slot)
    return Either.left(
      new QueryRefused({ message: parsed.left.message, line: parsed.left.line, column: parsed.left.column })
    )
  }
  const typed = queries.paramsOf(parsed.right, params)
  if (Either.isLeft(typed)) {
    watchdog.evaluating.close(slot)
    return Either.left(new QueryRefused({ message: typed.left, line: 1, column: 1 }))
  }
  const acquired = yield* engine.acquireSliced(parsed.right.select, typed.right, generation, slot, needsRoom)
  return Either.mapLeft(
    acquired,
    (refused) => new QueryRefused({ message: refused.reason, ...lineAndColumn(surql, refused.at) })
  )
}

/** The query of a stored registration, for {@link acquire}. */
export const queryOf = ({ id, params, surql }: StoredView): Pick<ViewRegistration, "id" | "surql" | "params"> => ({
  id,
  surql,
  params: JsonText.parse(params) as JsonParams
})

export const storedOf = (registration: ViewRegistration, key: string): StoredView => ({
  key,
  id: registration.id,
  surql: registration.surql,
  clientId: registration.clientId,
  ttlMs: registration.ttlMs,
  params: JsonText.write(registration.params),
  format: formatText(registration.format),
  lastActiveAtMs: registration.lastActiveAtMs
})

/** Rows that are taken back between two pauses. */
const sweptPerSlice = 1024

/** Pauses of a fill between two questions whether there is room. */
const pausesPerLook = 16

/** Why a stored view is not served: its query is refused at a place in its text, or it takes too much memory. */
type NotServed = QueryRefused | { readonly message: string }

/** {@link acquire} within a limit: a view that is too large is given up and releases what it holds. */
function* acquireInRoom(
  filling: FillContext,
  stored: StoredView,
  generation: number,
  tooLarge: TooLargeCheck
): Slices<Either.Either<View, NotServed>> {
  const slices: Slices<Either.Either<View, NotServed>> = acquire(filling, queryOf(stored), generation)
  for (let pauses = 1; ; pauses++) {
    const step = slices.next()
    if (step.done === true) return step.value
    const message = pauses % pausesPerLook === 0 ? tooLarge() : undefined
    if (message !== undefined) {
      const given = Either.left({ message })
      slices.return(given)
      const { releases } = filling.engine.kept
      for (; releases.size > 0; releases.sweep(sweptPerSlice)) yield
      return given
    }
    yield
  }
}

/** Fills a stored view; interrupted when the process stops. */
export const fillStored = (
  filling: FillContext & { readonly slicer: Slicer },
  stored: StoredView,
  generation: number,
  tooLarge: TooLargeCheck = () => undefined
): Effect.Effect<Either.Either<View, NotServed>> =>
  Effect.catchTag(
    filling.slicer.run(() => acquireInRoom(filling, stored, generation, tooLarge)),
    "Closed",
    () => Effect.interrupt
  )

/** Warns about a stored view that is not served, and why; `what`: its state, as `kept but not served`. */
export const warnRefused = ({ id }: StoredView, what: string, why: NotServed): Effect.Effect<void> =>
  Effect.logWarning(
    `view ${id} is ${what}: ${why.message}${"line" in why ? ` (line ${why.line}, column ${why.column})` : ""}`
  )
