/**
 * Sources of snapshots for a scheduler of a shared log: a folder or the log's servers if configured, else the other
 * schedulers.
 */
import type * as HttpClient from "@effect/platform/HttpClient"
import { Effect, type Redacted } from "effect"
import type { SnapshotUrl } from "../../core/settings/snapshotUrl.ts"
import * as HttpSnapshots from "../../drivers/httpSnapshots.ts"
import type { SharedLogShape } from "../../ports/SharedLog.ts"
import { firstOf, type SnapshotFailed, type SnapshotStore, type SnapshotsShape } from "../../ports/Snapshots.ts"
import { StartFault } from "../../ports/StartFault.ts"
import * as KeptSnapshots from "./keptSnapshots.ts"
import * as SnapshotFolder from "./snapshotFolder.ts"

interface SourcesOptions {
  readonly log: Pick<SharedLogShape, "logId" | "snapshots">
  readonly peers: HttpSnapshots.PeersOptions["members"]
  readonly schedulerId: string
  readonly peerSecret: () => Redacted.Redacted<string> | undefined
  readonly snapshotSource: SnapshotUrl
  readonly snapshotIntervalSecs: number
  readonly snapshotTimeoutSecs: number
}

/** Undefined: no copies are kept apart from the schedulers' disks. */
const storeOf = ({
  log,
  schedulerId,
  snapshotSource
}: SourcesOptions): Effect.Effect<SnapshotStore, SnapshotFailed> | undefined => {
  if (snapshotSource.kind === "folder")
    return SnapshotFolder.make({ folder: snapshotSource.path, logId: log.logId, name: schedulerId })
  if (snapshotSource.kind === "peer") return undefined
  return log.snapshots ?? Effect.dieMessage("broken invariant: this log keeps no snapshots, and the settings ask it to")
}

export const make = (options: SourcesOptions): Effect.Effect<SnapshotsShape, StartFault, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const { log, snapshotIntervalSecs, snapshotTimeoutSecs } = options
    const peers = yield* HttpSnapshots.make({
      members: options.peers,
      secret: options.peerSecret,
      answerMs: snapshotTimeoutSecs * 1000
    })
    const opening = storeOf(options)
    if (opening === undefined) return peers
    const store = yield* Effect.mapError(opening, ({ message }) => new StartFault({ exitCode: 1, message }))
    return firstOf([KeptSnapshots.make(store, { logId: log.logId, intervalMs: snapshotIntervalSecs * 1000 }), peers])
  })
