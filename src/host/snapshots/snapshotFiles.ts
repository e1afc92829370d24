/**
 * Files as streams of bytes with their SHA-256, read and written in pieces, so that their size affects neither memory
 * nor the event loop.
 */
import { createHash } from "node:crypto"
import * as fs from "node:fs/promises"
import { Effect, Encoding, Option, Stream } from "effect"
import { SnapshotFailed } from "../../ports/Snapshots.ts"

const pieceBytes = 1_048_576

const failedAt = (what: string, error: unknown): SnapshotFailed => {
  if (error instanceof SnapshotFailed) return error
  const code = error instanceof Error && "code" in error ? error.code : undefined
  return new SnapshotFailed({
    reason: code === "ENOSPC" || code === "EDQUOT" ? "full" : "failed",
    message: `${what}: ${error instanceof Error ? error.message : String(error)}`
  })
}

export const tryFile = <A>(what: string, body: () => Promise<A>): Effect.Effect<A, SnapshotFailed> =>
  Effect.tryPromise({ try: body, catch: (error) => failedAt(what, error) })

/** Bytes of an open file from its beginning; `handle` stays open. */
export const read = (what: string, handle: fs.FileHandle, bytes: number): Stream.Stream<Uint8Array, SnapshotFailed> =>
  Stream.unfoldEffect(0, (at) =>
    at >= bytes
      ? Effect.succeedNone
      : tryFile(what, async () => {
          const { buffer, bytesRead } = await handle.read(
            new Uint8Array(Math.min(pieceBytes, bytes - at)),
            0,
            undefined,
            at
          )
          if (bytesRead === 0) throw new Error(`it ends at ${at} of ${bytes} bytes`)
          return Option.some([buffer.subarray(0, bytesRead), at + bytesRead] as const)
        })
  )

/** SHA-256 of the content, in hexadecimal. */
export const sha256Of = (content: Stream.Stream<Uint8Array, SnapshotFailed>): Effect.Effect<string, SnapshotFailed> =>
  Effect.suspend(() => {
    const hash = createHash("sha256")
    return Effect.as(
      Stream.runForEach(content, (piece) => Effect.sync(() => void hash.update(piece))),
      hash
    )
  }).pipe(Effect.map((hash) => Encoding.encodeHex(hash.digest())))

/** Writes a file anew and flushes it; answers the SHA-256 of its content. An incomplete file is removed. */
export const write = (
  path: string,
  content: Stream.Stream<Uint8Array, SnapshotFailed>
): Effect.Effect<string, SnapshotFailed> =>
  Effect.acquireUseRelease(
    tryFile(path, () => fs.open(path, "w", 0o600)),
    (handle) =>
      sha256Of(Stream.tap(content, (piece) => tryFile(path, () => handle.writeFile(piece)))).pipe(
        Effect.zipLeft(tryFile(path, () => handle.sync()))
      ),
    (handle, exit) =>
      Effect.promise(async () => {
        await handle.close()
        if (exit._tag === "Failure") await fs.rm(path, { force: true })
      })
  )

/** Flushes the names in a folder to disk. */
export const syncFolder = (folder: string): Effect.Effect<void, SnapshotFailed> =>
  Effect.acquireUseRelease(
    tryFile(folder, () => fs.open(folder, "r")),
    (handle) => tryFile(folder, () => handle.sync()),
    (handle) => Effect.promise(() => handle.close())
  )
