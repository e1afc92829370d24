/**
 * Reads and writes results of views with pauses: a result may take hundreds of megabytes, and reading or writing it in
 * one turn would block all other work (D48).
 *
 * A result that fits one slice, as nearly all do, is answered in the turn of its request.
 */

import { Cause, Effect, Exit } from "effect"
import { Recent } from "../../core/recent.ts"
import { drain, type Slices } from "../../core/surql/evaluate/scope.ts"
import type { ViewEvent } from "../../node/streams/viewEvent.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { Sees } from "../../protocol/access.ts"
import type { Format, PlacedViewAnswer, ViewAnswer } from "../viewTypes.ts"
import * as AnswerBytes from "./answerBytes.ts"
import { answerOf, formatOf, type RegisteredView, type Registry, type ResultState } from "./registry.ts"
import * as ResultTag from "./resultTag.ts"

/** A stream's first event, and the generation that the view's deltas continue. */
export interface SnapshotEvent {
  readonly generation: number
  readonly event: ViewEvent
  readonly hash: string
  /** Whether the view shows all its rows. */
  readonly hasNoErrors: boolean
}

/** A request of a reader. */
export interface ReadRequest {
  /** Undefined: the format of the registration. */
  readonly format: Format | undefined
  /** Entity tag of the result that the client has; if it is current, nothing is read. */
  readonly ifNoneMatch: string | undefined
  /** How much the caller may see of failures. */
  readonly sees: Sees
}

/** A result for a reader: its tag, and its bytes unless the reader has them. */
export interface ReadAnswer {
  /** Undefined if rows are left out. */
  readonly tag: string | undefined
  readonly pieces: ReadonlyArray<Uint8Array> | undefined
}

/** Tag of the current result, without reading it. */
const tagNow = ({ generationOffset, instance }: RegisteredView, format: Format): string | undefined =>
  instance.errors().length > 0
    ? undefined
    : ResultTag.tagOf({
        content_generation: instance.generation + generationOffset,
        result_hash: instance.hash(),
        format
      })

/** Limits of the cache of short answers, in bytes and number: 4 MiB in all. */
const shortBytes = 4096
const mostShort = 1000

/** Finds the view of an id, or fails with the reason why there is none. */
type Find<E> = Effect.Effect<RegisteredView, E>

export class ResultReader {
  /** Short answers that were read last, by the view's incarnation and the requested id. */
  private readonly short = new Recent<string, ReadAnswer>(mostShort)

  constructor(
    private readonly registry: Registry,
    private readonly slicer: Slicer
  ) {}

  /**
   * One state of the view's result, the newest. `id`: as in the request. `format` undefined: that of the registration.
   */
  read<E>(find: Find<E>, id: string, format: Format | undefined): Effect.Effect<ViewAnswer, E> {
    return Effect.flatMap(find, (view) =>
      Effect.flatMap(this.shown(view, format ?? formatOf(view)), (shown) =>
        shown === undefined ? this.read(find, id, format) : Effect.succeed(answerOf(view, id, shown))
      )
    )
  }

  /**
   * The answer to a registration: the result when the view was filled, or the current one if it has changed. If the
   * view was replaced meanwhile, the former.
   */
  first(view: RegisteredView, id: string, filled: ResultState): Effect.Effect<ViewAnswer> {
    const { instance } = view
    if (filled.instance === instance && filled.generation === instance.generation && filled.hash === instance.hash())
      return Effect.succeed(answerOf(view, id, filled))
    return Effect.map(this.shown(view, filled.format), (shown) => answerOf(view, id, shown ?? filled))
  }

  /** The answer as JSON, in pieces. */
  written(answer: ViewAnswer | PlacedViewAnswer, sees: Sees): Effect.Effect<ReadonlyArray<Uint8Array>> {
    return this.sliced(() => AnswerBytes.answerPieces(answer, sees))
  }

  /**
   * A snapshot with its bytes; undefined if the view was replaced meanwhile. `done` is called once, in this turn if one
   * slice suffices; the returned function abandons the read.
   */
  snapshot(
    view: RegisteredView,
    id: string,
    format: Format,
    done: (made: SnapshotEvent | undefined) => void
  ): (() => void) | undefined {
    return this.begun(
      () => this.snapshotSliced(view, id, format),
      (made) => done(Exit.isSuccess(made) ? made.value : undefined)
    )
  }

  /** Reads a view's answer as JSON, in pieces; calls back and returns as {@link snapshot}. */
  answer(
    view: RegisteredView,
    id: string,
    { format: given, ifNoneMatch, sees }: ReadRequest,
    done: (looked: Exit.Exit<ReadAnswer | undefined>) => void
  ): (() => void) | undefined {
    const format = given ?? formatOf(view)
    const tag = tagNow(view, format)
    if (ResultTag.namesTag(ifNoneMatch, tag)) {
      done(Exit.succeed({ tag, pieces: undefined }))
      return undefined
    }
    const key = `${view.incarnation} ${id}`
    const known = tag === undefined ? undefined : this.short.get(key)
    if (known !== undefined && known.tag === tag) {
      done(Exit.succeed(known))
      return undefined
    }
    return this.begun(
      () => this.answerSliced(view, id, format, sees),
      (looked) => {
        if (Exit.isSuccess(looked) && looked.value !== undefined) this.keep(key, looked.value)
        done(looked)
      }
    )
  }

  /** Caches a short answer; its tag tells whether it is still current. */
  private keep(key: string, looked: ReadAnswer): void {
    const { pieces, tag } = looked
    if (tag === undefined || pieces === undefined || pieces.length > 1 || pieces[0]!.length > shortBytes) return
    this.short.set(key, looked)
  }

  private *snapshotSliced(view: RegisteredView, id: string, format: Format): Slices<SnapshotEvent | undefined> {
    const shown = yield* this.registry.shownSliced(view, format)
    if (shown === undefined) return undefined
    const answer = answerOf(view, id, shown)
    const generation = answer.content_generation
    const event = yield* AnswerBytes.snapshotEvent(`${view.incarnation}.${generation}`, answer)
    return { generation, event, hash: shown.hash, hasNoErrors: shown.errors.length === 0 }
  }

  private *answerSliced(view: RegisteredView, id: string, format: Format, sees: Sees): Slices<ReadAnswer | undefined> {
    const shown = yield* this.registry.shownSliced(view, format)
    if (shown === undefined) return undefined
    const answer = answerOf(view, id, shown)
    return { tag: ResultTag.tagOf(answer), pieces: yield* AnswerBytes.answerPieces(answer, sees) }
  }

  private begun<A>(make: () => Slices<A>, done: (made: Exit.Exit<A>) => void): (() => void) | undefined {
    return this.slicer.begin(make, (exit) => {
      if (Exit.isSuccess(exit)) done(Exit.succeed(exit.value))
      else if (Cause.isDie(exit.cause)) done(Exit.failCause(exit.cause as Cause.Cause<never>))
      // A stopping service has no more turns, so the result is made at once.
      else done(Exit.succeed(drain(make())))
    })
  }

  private shown(view: RegisteredView, format: Format): Effect.Effect<ResultState | undefined> {
    return this.sliced(() => this.registry.shownSliced(view, format))
  }

  /** A stopping service has no more turns, so the result is made at once. */
  private sliced<A>(make: () => Slices<A>): Effect.Effect<A> {
    return Effect.catchTag(this.slicer.soon(make), "Closed", () => Effect.sync(() => drain(make())))
  }
}
