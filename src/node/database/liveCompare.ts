/**
 * Compares with the database while changes flow: finds records that differ, and still do a moment later, and repairs
 * those that have not changed meanwhile (D20, D25).
 *
 * Shared by the SSP's memory and the scheduler's replica, so that both agree on when a difference counts: only if a
 * second look, a moment after the first, shows it, and only if the record has not changed when the repair is applied.
 * Repaired records are looked at a few more times: an event may have announced what a long transaction had yet to
 * commit.
 */
import { Duration, Effect, Fiber } from "effect"
import { chunksOf } from "../../core/chunksOf.ts"
import { isReadable, noRoomToRead } from "../../core/record/memory.ts"
import * as Compare from "../../core/record/reconcile.ts"
import type { RecordId, RecordKey } from "../../core/surql/values/value.ts"
import { isOwn } from "../../core/surreal/surrealSchema.ts"
import { Meters } from "../../ports/Meters.ts"
import type { HeapShape } from "../../ports/ProcessFigures.ts"
import { Progress, type Step } from "../../ports/Progress.ts"
import { steadyMs } from "../../ports/Turn.ts"
import type { UpstreamError, UpstreamShape, UpstreamTable } from "../../ports/Upstream.ts"

/** A difference, with the own side's state when it was seen. */
export interface Suspect<K extends Compare.Known, S> extends Compare.Difference<K> {
  readonly state: S | undefined
}

/**
 * One side of a compare. `K`: a known record; `S`: a state, which may be a deletion; `R` and `W`: errors of reading and
 * of repairing.
 */
export interface Side<K extends Compare.Known, S, R, W> {
  /** Most records in one read. */
  readonly chunkSize: number
  /** Fails while memory has no room for a further stretch; asked before each one while the node serves. */
  readonly room: Effect.Effect<void, W>
  /** Adopts the declarations of the database, at the start of every compare. */
  readonly declare: (tables: ReadonlyArray<UpstreamTable>) => void
  readonly names: Effect.Effect<ReadonlyArray<string>, R>
  /** Records of the table in this stretch of keys. */
  readonly between: (table: string, stretch: Stretch) => Effect.Effect<Iterable<K>, R>
  /** States of the known records among these, by id text. */
  readonly states: (ids: ReadonlyArray<RecordId>) => Effect.Effect<ReadonlyMap<string, S>, R>
  readonly known: (state: S) => K | undefined
  /** Whether a record has not changed between the two. */
  readonly unmoved: (before: K | undefined, now: K | undefined) => boolean
  /** Whether the difference is more than what a record loses on its way to this side. */
  readonly differs: (difference: Compare.Difference<K>) => boolean
  /**
   * Brings records to the database's state as one step, if they are still in the suspect's state; answers the repaired
   * ids.
   */
  readonly repair: (suspects: ReadonlyArray<Suspect<K, S>>) => Effect.Effect<ReadonlyArray<RecordId>, W>
}

/** Result of a compare. */
export interface Compared {
  /** Records of the database that were compared. */
  readonly compared: number
  /** Ids of the records that differed and now do not. */
  readonly repaired: ReadonlyArray<string>
}

interface Failed {
  readonly message: string
}

/** Time between the first and the second look, in ms. */
export const defaultMomentMs = 1_000
/** Records of one read in a second look. */
const lookSize = 500
/** Limit of text repaired as one step; more records are several steps. */
const togetherBytes = 8 * Compare.stretchBytes
/** Moments after which repaired records are looked at again. */
const laterLooks = [2, 4, 8, 16, 32]
const maxLater = 10_000
/** Most ids named in a log line. */
const shownIds = 5

const shown = (ids: ReadonlyArray<string>): string =>
  `${ids.slice(0, shownIds).join(", ")}${ids.length > shownIds ? ", …" : ""}`

/** Records of one table that the database read together, with the keys they lie between. */
export interface Stretch {
  readonly table: string
  readonly found: ReadonlyArray<Compare.Found>
  /** Behind this key; undefined: from the first one on. */
  readonly after: RecordKey | undefined
  /** Up to this key; undefined: to the end of the table. */
  readonly last: RecordKey | undefined
}

/**
 * Reads tables stretch by stretch, the next one while `deal` works on one; answers the number of records. `read`
 * answers `size` records behind a key (`most` or fewer if they are large); less than `size` ends the table.
 */
export const readStretches = <E, E2>(
  tables: Iterable<string>,
  most: number,
  read: (table: string, after: RecordKey | undefined, size: number) => Effect.Effect<ReadonlyArray<Compare.Found>, E>,
  deal: (stretch: Stretch) => Effect.Effect<void, E2>
): Effect.Effect<number, E | E2> =>
  Effect.gen(function* () {
    let count = 0
    for (const table of tables) {
      let after: RecordKey | undefined
      let size = Compare.stretchSize([], most)
      for (let found = yield* read(table, undefined, size); ; ) {
        const last = found.length < size ? undefined : found.at(-1)?.id.key
        if (last !== undefined) size = Compare.stretchSize(found, most)
        const next = last === undefined ? undefined : yield* Effect.fork(read(table, last, size))
        count += found.length
        yield* deal({ table, found, after, last })
        if (next === undefined) break
        found = yield* Fiber.join(next)
        after = last
      }
    }
    return count
  })

/**
 * Drops differences that only look like deletions: the database sorts some keys in its own order, so these records may
 * lie in another stretch and are asked for by id.
 */
export const withoutStrays = <K extends Compare.Known, E>(
  differences: ReadonlyArray<Compare.Difference<K>>,
  find: (ids: ReadonlyArray<RecordId>) => Effect.Effect<ReadonlyArray<Compare.Found>, E>
): Effect.Effect<ReadonlyArray<Compare.Difference<K>>, E> => {
  const gone = differences.filter(({ found }) => found === undefined)
  if (gone.length === 0) return Effect.succeed(differences)
  return Effect.map(find(gone.map(({ id }) => id)), (there) => {
    const ids = new Set(there.map(({ id }) => id.text))
    return differences.filter(({ found, id }) => found !== undefined || !ids.has(id.text))
  })
}

/** Approximate text size of these records, in bytes. */
const textOf = (differences: ReadonlyArray<Compare.Difference<Compare.Known>>): number =>
  Compare.textBytes(differences.flatMap(({ found, known }) => found ?? known ?? []))

/** Fails while the heap has no room for a further piece of a table (D43). */
export const roomToCompare = <E>(heap: HeapShape, refusal: (message: string) => E): Effect.Effect<void, E> =>
  Effect.suspend(() => {
    const memory = heap.memory()
    return isReadable(memory) ? Effect.void : Effect.fail(refusal(noRoomToRead(memory, "a compare goes on")))
  })

/** Log lines about failed compares: a lack of memory is logged once, until a compare completes. */
export const makeFailureLog = () => {
  let isShort = false
  return {
    say: ({ _tag, message }: Failed & { readonly _tag: string }, when = ""): Effect.Effect<void> =>
      Effect.suspend(() => {
        const wasShort = isShort
        isShort = _tag === "Overloaded"
        return isShort && wasShort
          ? Effect.void
          : Effect.logWarning(`the compare with the database failed: ${message}; trying again${when}`)
      }),
    over: Effect.sync(() => void (isShort = false))
  }
}

interface LiveCompareOptions<K extends Compare.Known, S, R, W> {
  readonly upstream: UpstreamShape
  readonly side: Side<K, S, R, W>
  readonly momentMs: number
  /** Most records repaired as one step: one transaction should be seen as one (D76). */
  readonly together: number
  /** Forks work that goes on after the compare. */
  readonly fork: (later: Effect.Effect<void>) => Effect.Effect<void>
}

export class LiveCompare<K extends Compare.Known, S, R extends Failed, W extends Failed> {
  constructor(private readonly parts: LiveCompareOptions<K, S, R, W>) {}

  /** Compares all tables, stretch by stretch; answers the database's number of records. */
  each<E, E2>(
    reading: <A>(effect: Effect.Effect<A, UpstreamError>) => Effect.Effect<A, E>,
    deal: (differences: ReadonlyArray<Compare.Difference<K>>) => Effect.Effect<void, E2>,
    step?: Step,
    only?: ReadonlySet<string>
  ): Effect.Effect<number, R | E | E2> {
    return Effect.gen(this, function* () {
      const { side, upstream } = this.parts
      const tables = yield* reading(upstream.tables)
      side.declare(tables)
      const names = new Set(
        [...tables.map(({ name }) => name), ...(yield* side.names)].filter(
          (name) => !isOwn(name) && only?.has(name) !== false
        )
      )
      return yield* readStretches(
        names,
        side.chunkSize,
        (table, after, size) => reading(upstream.chunk(table, after, size)),
        (stretch) => {
          step?.at(`table ${stretch.table}`)
          step?.add(stretch.found.length)
          return Effect.flatMap(this.differences(stretch), deal)
        }
      )
    })
  }

  /** Reads of the database while the node serves, while memory has room (D43). */
  readonly asRoomAllows = <A>(effect: Effect.Effect<A, UpstreamError>): Effect.Effect<A, UpstreamError | W> =>
    Effect.zipRight(this.parts.side.room, effect)

  /** Compares everything while changes flow. */
  readonly now: Effect.Effect<Compared, UpstreamError | R | W> = Effect.suspend(() => this.some(undefined))

  /** Compares these tables while changes flow, also deleted ones; undefined: all. */
  some(tables: ReadonlySet<string> | undefined): Effect.Effect<Compared, UpstreamError | R | W> {
    return Progress.during("reconcile", "the database", "records", (step) => this.compare(step, tables)).pipe(
      Effect.tap(({ repaired }) =>
        Effect.map(Meters, ({ reconcileDifferences }) => reconcileDifferences.add(repaired.length))
      )
    )
  }

  private readonly compare = (
    step: Step,
    only: ReadonlySet<string> | undefined
  ): Effect.Effect<Compared, UpstreamError | R | W> =>
    Effect.gen(this, function* () {
      const { together } = this.parts
      const repaired: Array<RecordId> = []
      let suspects: Array<Compare.Difference<K>> = []
      let bytes = 0
      const look = Effect.suspend(() => {
        const batch = suspects
        suspects = []
        bytes = 0
        return Effect.map(this.lookAgain(batch), (ids) => void repaired.push(...ids))
      })
      let lastMs = yield* steadyMs
      const compared = yield* this.each(
        this.asRoomAllows,
        (differences) =>
          Effect.gen(function* () {
            suspects.push(...differences)
            bytes += textOf(differences)
            if (suspects.length >= together || bytes >= togetherBytes) yield* look
            // Pauses as long as the stretch took: a compare takes at most half of the database's time, and of this
            // node's.
            yield* Effect.sleep(Duration.millis((yield* steadyMs) - lastMs))
            lastMs = yield* steadyMs
          }),
        step,
        only
      )
      if (suspects.length > 0) yield* look
      const ids = repaired.map(({ text }) => text)
      if (ids.length === 0) yield* Effect.logDebug(`compared ${compared} records with the database, none differed`)
      else {
        yield* Effect.logWarning(
          `compared ${compared} records with the database: ${ids.length} differed and were repaired: ${shown(ids)}`
        )
        yield* this.parts.fork(this.lookLater(repaired))
      }
      return { compared, repaired: ids }
    })

  private differences(stretch: Stretch): Effect.Effect<ReadonlyArray<Compare.Difference<K>>, R> {
    return Effect.gen(this, function* () {
      const { side } = this.parts
      const { found, table } = stretch
      const between = new Map(
        Array.from(yield* side.between(table, stretch), (record) => [record.id.text, record] as const)
      )
      // Keys that the database sorts in another order are looked up by id.
      const others = yield* side.states(found.flatMap(({ id }) => (between.has(id.text) ? [] : [id])))
      return Compare.compare(
        found,
        between.values(),
        ({ text }) => between.get(text) ?? this.knownAs(others.get(text))
      ).filter(side.differs)
    })
  }

  private knownAs(state: S | undefined): K | undefined {
    return state === undefined ? undefined : this.parts.side.known(state)
  }

  /** The second look, a moment after the first; repairs and answers records that still differ. */
  private lookAgain(
    suspects: ReadonlyArray<Compare.Difference<K>>
  ): Effect.Effect<ReadonlyArray<RecordId>, UpstreamError | R | W> {
    return Effect.gen(this, function* () {
      if (suspects.length === 0) return []
      const { momentMs, side } = this.parts
      yield* Effect.sleep(Duration.millis(momentMs))
      const states = yield* side.states(suspects.map(({ id }) => id))
      // A record that changed since is delivered by its own change, so it is no difference.
      const unmoved = suspects
        .filter(({ id, known }) => side.unmoved(known, this.knownAs(states.get(id.text))))
        .map(({ id }) => id)
      const parts = yield* Effect.forEach(chunksOf(unmoved, lookSize), (part) => this.look(part))
      return yield* side.repair(parts.flat())
    })
  }

  /** The differences among these records. */
  private look(ids: ReadonlyArray<RecordId>): Effect.Effect<ReadonlyArray<Suspect<K, S>>, UpstreamError | R> {
    return Effect.gen(this, function* () {
      const { side, upstream } = this.parts
      // The own side is read first, so that a change during the read of the database is noticed.
      const states = yield* side.states(ids)
      const found = new Map((yield* upstream.find(ids)).map((record) => [record.id.text, record]))
      return ids
        .map((id): Suspect<K, S> => {
          const state = states.get(id.text)
          return { id, known: this.knownAs(state), found: found.get(id.text), state }
        })
        .filter((suspect) => Compare.differs(suspect.known, suspect.found) && side.differs(suspect))
    })
  }

  /**
   * Looks at repaired records again, in growing pauses. A database that does not answer is left to the next compare.
   */
  private lookLater(ids: ReadonlyArray<RecordId>): Effect.Effect<void> {
    return Effect.forEach(
      laterLooks,
      (moments) =>
        Effect.zipRight(
          Effect.sleep(Duration.millis(moments * this.parts.momentMs)),
          this.look(ids.slice(0, maxLater))
        ).pipe(
          Effect.flatMap((suspects) => this.lookAgain(suspects)),
          Effect.flatMap((again) =>
            again.length === 0
              ? Effect.void
              : Effect.logWarning(
                  `${again.length} records that were repaired differed again and were repaired again: ${shown(again.map(({ text }) => text))}`
                )
          ),
          Effect.catchAll((error) => Effect.logDebug(`repaired records could not be looked at again: ${error.message}`))
        ),
      { discard: true }
    )
  }
}
