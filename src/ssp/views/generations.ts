/**
 * The saved state of the views (D23): each view's generation, so that it keeps growing over a restart.
 *
 * Records, versions and registrations are durable elsewhere. Generations are saved with a debounce, so after a crash
 * they may be behind; a view cannot have changed more often than records were written since, and that many are added. A
 * clean stop saves the exact figures. A damaged or newer file is moved away and reported; the service starts without
 * it.
 */
import { Effect, Either, Schema } from "effect"
import type { SavedState } from "../../ports/SavedState.ts"

const stateFormat = 1

const State = Schema.Struct({
  format: Schema.Literal(stateFormat),
  writes: Schema.Int,
  generations: Schema.Array(Schema.Tuple(Schema.String, Schema.Int))
})

interface Generations {
  readonly writes: number
  readonly generations: ReadonlyArray<readonly [key: string, generation: number]>
}

const decode = Schema.decodeUnknownEither(Schema.parseJson(State))

/** Generation with which each view restarts, given the store's number of record writes. */
export const loadGenerations = (
  savedState: SavedState["Type"],
  writes: number
): Effect.Effect<(key: string) => number> =>
  Effect.gen(function* () {
    const text = yield* savedState.load
    if (text === undefined) return (_key: string) => 1 + writes
    const state = decode(text)
    if (Either.isLeft(state) || state.right.writes > writes) {
      const where = yield* savedState.setAside
      const why = Either.isLeft(state) ? "is damaged or of another version" : "is newer than the store"
      yield* Effect.logWarning(`the saved state ${why}; it was moved to ${where} and is rebuilt`)
      return (_key: string) => 1 + writes
    }
    const generations = new Map(state.right.generations)
    const since = writes - state.right.writes
    return (key: string) => (generations.get(key) ?? 1) + since
  }).pipe(
    Effect.catchAll((error) =>
      Effect.as(Effect.logWarning(`the saved state cannot be read: ${error.message}`), (_key: string) => 1 + writes)
    )
  )

/**
 * Saves after changes, at most once per `debounceMs`, and once more at the end. While `snapshot` is undefined nothing
 * is saved.
 */
export const saveLoop = (
  savedState: SavedState["Type"],
  debounceMs: number,
  snapshot: () => Generations | undefined
): Effect.Effect<never> => {
  let saved = -1
  let views = -1
  const save = Effect.suspend(() => {
    const now = snapshot()
    if (now === undefined || (now.writes === saved && now.generations.length === views)) return Effect.void
    return savedState.save(JSON.stringify({ format: stateFormat, ...now })).pipe(
      Effect.tap(() =>
        Effect.sync(() => {
          saved = now.writes
          views = now.generations.length
        })
      ),
      Effect.catchAll((error) =>
        Effect.logWarning(`the saved state cannot be written, will try again: ${error.message}`)
      )
    )
  })
  return Effect.forever(Effect.zipRight(Effect.sleep(debounceMs), save)).pipe(Effect.onExit(() => save))
}
