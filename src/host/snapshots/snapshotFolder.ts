/**
 * Snapshots in a folder that every scheduler of a log reaches, a shared volume.
 *
 * One file is one snapshot. It is named once all of it is flushed, so an incomplete file has another name.
 */
import * as fs from "node:fs/promises"
import { join } from "node:path"
import { Clock, Effect } from "effect"
import { type KeptContent, nameOf, type SnapshotFailed, type SnapshotStore } from "../../ports/Snapshots.ts"
import * as Files from "./snapshotFiles.ts"

interface SnapshotFolderOptions {
  readonly folder: string
  readonly logId: string
  /** Name of the scheduler that writes. */
  readonly name: string
}

/** Age of an incomplete file at which its scheduler counts as gone. */
const abandonedMs = 86_400_000

class SnapshotFolder implements SnapshotStore {
  constructor(private readonly options: SnapshotFolderOptions) {}

  private trying<A>(body: () => Promise<A>): Effect.Effect<A, SnapshotFailed> {
    return Files.tryFile(`the snapshots in ${this.options.folder} (SVC_SNAPSHOT_URL)`, body)
  }

  readonly shown: SnapshotStore["shown"] = (name) => join(this.options.folder, name)

  readonly names: SnapshotStore["names"] = Effect.suspend(() => this.trying(() => fs.readdir(this.options.folder)))

  readonly open: SnapshotStore["open"] = (name) =>
    Effect.gen(this, function* () {
      const path = this.shown(name)
      const handle = yield* Effect.acquireRelease(
        this.trying(() => fs.open(path, "r")),
        (open) => Effect.promise(() => open.close())
      )
      const { mtimeMs, size } = yield* this.trying(() => handle.stat())
      return { bytes: size, writtenAt: mtimeMs, content: Files.read(path, handle, size) } satisfies KeptContent
    })

  readonly write: SnapshotStore["write"] = (snapshot) =>
    Effect.gen(this, function* () {
      const { folder, logId, name } = this.options
      const part = this.shown(`svc-${logId}-${name}.part`)
      yield* Files.write(part, snapshot.content)
      const final = nameOf(snapshot)
      yield* this.trying(() => fs.rename(part, this.shown(final)))
      yield* Files.syncFolder(folder)
      return final
    })

  readonly remove: SnapshotStore["remove"] = (names) =>
    this.trying(async () => {
      for (const name of names) await fs.rm(this.shown(name), { force: true })
    })

  readonly sweep: SnapshotStore["sweep"] = Effect.suspend(() =>
    Effect.gen(this, function* () {
      const { folder, logId } = this.options
      const now = yield* Clock.currentTimeMillis
      const parts = yield* this.trying(async () => {
        const names = (await fs.readdir(folder)).filter(
          (name) => name.startsWith(`svc-${logId}-`) && name.endsWith(".part")
        )
        const ages = await Promise.all(names.map((name) => fs.stat(join(folder, name)).catch(() => undefined)))
        return names.filter((_, i) => now - (ages[i]?.mtimeMs ?? now) > abandonedMs)
      })
      yield* this.remove(parts)
    })
  )
}

/** Creates the folder if it is missing. */
export const make = (options: SnapshotFolderOptions): Effect.Effect<SnapshotStore, SnapshotFailed> =>
  Effect.as(
    Files.tryFile(`${options.folder} (SVC_SNAPSHOT_URL)`, async () => {
      await fs.mkdir(options.folder, { recursive: true, mode: 0o700 })
      // Removes the partial file that this scheduler left if it was killed while writing.
      await fs.rm(join(options.folder, `svc-${options.logId}-${options.name}.part`), { force: true })
    }),
    new SnapshotFolder(options)
  )
