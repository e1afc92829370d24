/**
 * The gates of a registration (D8), in the order in which it passes them; the first that is closed answers.
 *
 * In front of them a request that changes nothing is answered as a read (`node/http/repeatedRegistrations.ts`), others
 * are lines of the audit, and an assignment that is older than the one kept is refused (`membership/Assignments.ts`).
 * Behind them the view is filled, told to the database, made durable and put in place (`arrivals.ts`).
 */
import { Effect } from "effect"
import { viewKey } from "../../core/view/viewId.ts"
import type { HeapShape } from "../../ports/ProcessFigures.ts"
import {
  Overloaded,
  QueryRefused,
  type StoreFailed,
  type TablesJoining,
  type ViewAnswer,
  type ViewPlaced,
  type ViewQuarantined,
  type ViewRegistration
} from "../viewTypes.ts"
import { type Arrivals, isSame } from "./arrivals.ts"
import type { KeyTurns } from "./KeyTurns.ts"
import { storedOf } from "./registering.ts"
import type { Registry } from "./registry.ts"
import type { SetAside } from "./SetAside.ts"
import { fullHeap } from "./viewLimits.ts"
import type { ViewTables } from "./viewTables.ts"

type Passing = Effect.Effect<
  ViewAnswer | ViewPlaced,
  QueryRefused | Overloaded | StoreFailed | ViewQuarantined | TablesJoining
>

/** Answers what is behind it, or a refusal of its own. */
type Gate = (registration: ViewRegistration, key: string, onwards: Passing) => Passing

interface GateParts {
  readonly arrivals: Arrivals
  readonly heap: HeapShape
  readonly maxViews: number
  readonly registry: Registry
  readonly setAside: SetAside
  readonly tables: ViewTables
  readonly turns: KeyTurns
}

export class RegistrationGates {
  /** Registrations of new ids that are on their way. */
  private arriving = 0
  private readonly gates: ReadonlyArray<Gate>

  constructor(private readonly parts: GateParts) {
    this.gates = [this.isNotSetAside, this.holdsTables, this.inTurn, this.fitsHeap, this.isWithinLimit]
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
  private readonly isNotSetAside: Gate = (registration, key, onwards) => {
    const aside = this.parts.setAside.of(storedOf(registration, key), registration.id)
    return aside === undefined ? onwards : Effect.fail(aside)
  }

  /** In a cluster: the tables that the query reads are loaded, and kept until the view needs them by itself (D61). */
  private readonly holdsTables: Gate = (registration, _key, onwards) => this.parts.tables.holding(registration, onwards)

  /** Behind all that was asked of this id before (D9). */
  private readonly inTurn: Gate = (_registration, key, onwards) => this.parts.turns.inTurn(key, onwards)

  /** 503: a full heap takes no new query, and refreshes what is there (D43). */
  private readonly fitsHeap: Gate = (registration, key, onwards) => {
    const memory = this.parts.heap.memory()
    return memory.isFull && !isSame(this.parts.registry.get(key)?.stored, registration)
      ? Effect.fail(fullHeap(memory))
      : onwards
  }

  /** 503: new ids are counted while they are on their way, so that they cannot pass the limit together. */
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
