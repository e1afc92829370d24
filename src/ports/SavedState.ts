/**
 * The saved state of an SSP (D23): one small text that is rewritten whole, for what the store does not keep itself.
 *
 * It only ever speeds up or smooths a restart: losing it costs nothing but that, so a damaged one is set aside,
 * reported and rebuilt, never served.
 */
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import { Context, Data, Effect, Layer } from "effect"

/** The text cannot be read or written. */
export class SavedStateError extends Data.TaggedError("SavedStateError")<{
  readonly message: string
  readonly cause?: unknown
}> {}

/** One text that survives restarts. */
export interface SavedStateShape {
  /** The text last saved; undefined if there is none. */
  readonly load: Effect.Effect<string | undefined, SavedStateError>
  /** Replaces the text atomically: a reader, or a crash, sees the old text or the new one. */
  readonly save: (text: string) => Effect.Effect<void, SavedStateError>
  /** Moves an unusable text out of the way; answers its new place. */
  readonly setAside: Effect.Effect<string, SavedStateError>
}

/** A text in a file, replaced by rename. The folder is made when it is missing. */
export const inFile = (file: string): Effect.Effect<SavedStateShape, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function* () {
    const fs = yield* FileSystem.FileSystem
    const path = yield* Path.Path
    const failed = (cause: unknown) =>
      new SavedStateError({ message: `${file}: ${cause instanceof Error ? cause.message : String(cause)}`, cause })
    const temporary = `${file}.new`
    return {
      load: fs.exists(file).pipe(
        Effect.flatMap((exists) => (exists ? fs.readFileString(file) : Effect.succeed(undefined))),
        Effect.mapError(failed)
      ),
      save: (text: string) =>
        Effect.gen(function* () {
          yield* fs.makeDirectory(path.dirname(file), { recursive: true })
          const written = Effect.gen(function* () {
            const handle = yield* fs.open(temporary, { flag: "w" })
            yield* handle.writeAll(new TextEncoder().encode(text))
            yield* handle.sync
          })
          yield* Effect.scoped(written)
          yield* fs.rename(temporary, file)
        }).pipe(Effect.mapError(failed)),
      setAside: fs.rename(file, `${file}.damaged`).pipe(Effect.as(`${file}.damaged`), Effect.mapError(failed))
    }
  })

/** The saved state of an SSP, a text; `layerFile` over a platform's file system. */
export class SavedState extends Context.Tag("ports/SavedState")<SavedState, SavedStateShape>() {
  static readonly layerMemory: Layer.Layer<SavedState> = Layer.sync(SavedState, () => {
    let text: string | undefined
    return {
      load: Effect.sync(() => text),
      save: (next) => Effect.sync(() => void (text = next)),
      setAside: Effect.sync(() => {
        text = undefined
        return "nowhere: it was kept in memory"
      })
    }
  })

  static readonly layerFile = (file: string): Layer.Layer<SavedState, never, FileSystem.FileSystem | Path.Path> =>
    Layer.effect(SavedState, inFile(file))
}
