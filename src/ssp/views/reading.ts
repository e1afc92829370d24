/**
 * Reads what views show and writes it out, with pauses: a result may take hundreds of megabytes, and reading or writing
 * it in one turn would hold up all other work (D48).
 *
 * A result that takes one slice at most, as nearly all do, is answered in the turn in which it is asked for.
 */
import { Effect } from "effect"
import { drain, type Slices } from "../../core/surql/evaluate/scope.ts"
import type { Slicer } from "../../node/Slicer.ts"
import * as AnswerBytes from "./answerBytes.ts"
import { prepared } from "./eventBytes.ts"
import { answerOf, formatOf, type Registered, type Registry, type Shown } from "./registry.ts"
import type { Format, ViewAnswer, ViewEvent, ViewPlaced } from "./viewTypes.ts"

/** A stream's first event, and the generation that the view's deltas go on from. */
export interface Snapshot {
  readonly generation: number
  readonly event: ViewEvent
}

/** The view that an id stands for now, or why there is none. */
type Find<E> = Effect.Effect<Registered, E>

export class Reading {
  private readonly registry: Registry
  private readonly slicer: Slicer

  constructor(registry: Registry, slicer: Slicer) {
    this.registry = registry
    this.slicer = slicer
  }

  /** One state of the view's result, the newest; `id` as the request gave it, `format` as registered where none is. */
  read<E>(find: Find<E>, id: string, format: Format | undefined): Effect.Effect<ViewAnswer, E> {
    return Effect.flatMap(find, (view) =>
      Effect.flatMap(this.shown(view, format ?? formatOf(view)), (shown) =>
        shown === undefined ? this.read(find, id, format) : Effect.succeed(answerOf(view, id, shown))
      )
    )
  }

  /**
   * The answer to a registration: what the view showed when it was filled, or shows now where that has changed. Where
   * another view has taken its place already, the first.
   */
  first(view: Registered, id: string, filled: Shown): Effect.Effect<ViewAnswer> {
    const { instance } = view
    if (filled.instance === instance && filled.generation === instance.generation && filled.hash === instance.hash())
      return Effect.succeed(answerOf(view, id, filled))
    return Effect.map(this.shown(view, filled.format), (shown) => answerOf(view, id, shown ?? filled))
  }

  /** The answer as JSON, in pieces. */
  written(answer: ViewAnswer | ViewPlaced): Effect.Effect<ReadonlyArray<Uint8Array>> {
    return this.sliced(() => AnswerBytes.written(answer))
  }

  /** A snapshot whose bytes are made; undefined where another view has taken the place of this one meanwhile. */
  snapshot(view: Registered, id: string, format: Format): Effect.Effect<Snapshot | undefined> {
    return Effect.flatMap(this.shown(view, format), (shown) => {
      if (shown === undefined) return Effect.succeed(undefined)
      const answer = answerOf(view, id, shown)
      const generation = answer.content_generation
      return Effect.map(
        this.sliced(() => prepared(`${view.incarnation}.${generation}`, answer)),
        (event) => ({ generation, event })
      )
    })
  }

  private shown(view: Registered, format: Format): Effect.Effect<Shown | undefined> {
    return this.sliced(() => this.registry.shownSliced(view, format))
  }

  /** A service that stops has no more turns to wait for. */
  private sliced<A>(make: () => Slices<A>): Effect.Effect<A> {
    return Effect.catchTag(this.slicer.soon(make), "Closed", () => Effect.sync(() => drain(make())))
  }
}
