/**
 * The gates that a registration passes (D8), in order; the first closed gate answers.
 *
 * Before them a request that changes nothing is answered as a read (`node/http/repeatedRegistrations.ts`), others are
 * audited, and an assignment older than the known one is refused (`membership/Assignments.ts`). After them the view is
 * filled, written to the database, made durable and installed (`arrivals.ts`).
 */
import { Effect } from "effect"
import { viewKey } from "../../core/view/viewId.ts"
import type { HeapShape } from "../../ports/ProcessFigures.ts"
import {
  Overloaded,
  type PlacedViewAnswer,
  QueryRefused,
  type StoreFailed,
  type TablesJoining,
  type ViewAnswer,
  type ViewQuarantined,
  type ViewRegistration
} from "../viewTypes.ts"
import { type Arrivals, hasSameQuery } from "./arrivals.ts"
import type { KeyTurns } from "./KeyTurns.ts"
import type { QuarantinedViews } from "./QuarantinedViews.ts"
import { storedOf } from "./registering.ts"
import type { Registry } from "./registry.ts"
import { heapFull } from "./viewLimits.ts"
import type { ViewTables } from "./viewTables.ts"

type Passing = Effect.Effect<
  ViewAnswer | PlacedViewAnswer,
  QueryRefused | Overloaded | StoreFailed | ViewQuarantined | TablesJoining
>

/** Answers with `onwards`, or with a refusal of its own. */
type Gate = (registration: ViewRegistration, key: string, onwards: Passing) => Passing

interface GateParts {
  readonly arrivals: Arrivals
  readonly heap: HeapShape
  readonly maxViews: number
  readonly registry: Registry
  readonly quarantined: QuarantinedViews
  readonly tables: ViewTables
  readonly turns: KeyTurns
}

export class RegistrationGates {
  /** Registrations of new ids that are under way. */
  private arriving = 0
  private readonly gates: ReadonlyArray<Gate>

  constructor(private readonly parts: GateParts) {
    this.gates = [this.isNotQuarantined, this.holdsTables, this.inTurn, this.fitsHeap, this.isWithinLimit]
  }

  readonly register = (registration: ViewRegistration): Passing => {
    const key = viewKey(registration.id)
    if (key === undefined) return Effect.fail(new QueryRefused({ message: "the view id is empty", line: 1, column: 1 }))
    return this.gates.reduceRight<Passing>(
      (onwards, gate) => Effect.suspend(() => gate(registration, key, onwards)),
      this.parts.arrivals.open(registration, key)
    )
  }

  /** 409: the process ended while it evaluated this query (D48). */
  private readonly isNotQuarantined: Gate = (registration, key, onwards) => {
    const aside = this.parts.quarantined.of(storedOf(registration, key), registration.id)
    return aside === undefined ? onwards : Effect.fail(aside)
  }

  /** In a cluster: loads the tables that the query reads, and holds them until the view itself needs them (D61). */
  private readonly holdsTables: Gate = (registration, _key, onwards) => this.parts.tables.holding(registration, onwards)

  /** Waits for all earlier requests for this id (D9). */
  private readonly inTurn: Gate = (_registration, key, onwards) => this.parts.turns.inTurn(key, onwards)

  /** 503: a full heap takes no new query; refreshes pass (D43). */
  private readonly fitsHeap: Gate = (registration, key, onwards) => {
    const memory = this.parts.heap.memory()
    return memory.isFull && !hasSameQuery(this.parts.registry.get(key)?.stored, registration)
      ? Effect.fail(heapFull(memory))
      : onwards
  }

  /** 503: new ids count while they are under way, so that they cannot pass the limit together. */
  private readonly isWithinLimit: Gate = (_registration, key, onwards) => {
    const { maxViews, registry } = this.parts
    if (registry.get(key) !== undefined) return onwards
    const known = registry.size + this.arriving
    if (known >= maxViews)
      return Effect.fail(
        new Overloaded({
          message: `${known} views are registered, the limit is ${maxViews} (SVC_MAX_VIEWS)`,
          retryAfterSecs: 60
        })
      )
    this.arriving++
    return Effect.ensuring(
      onwards,
      Effect.sync(() => this.arriving--)
    )
  }
}
