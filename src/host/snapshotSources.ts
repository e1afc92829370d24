/** Where a scheduler of a shared log gets snapshots: from a folder where one is set, else from the other schedulers. */
import type * as HttpClient from "@effect/platform/HttpClient"
import { Effect, type Redacted } from "effect"
import * as HttpSnapshots from "../drivers/httpSnapshots.ts"
import type { SharedLogShape } from "../ports/SharedLog.ts"
import { firstOf, type SnapshotsShape } from "../ports/Snapshots.ts"
import { StartFault } from "../ports/StartFault.ts"
import * as SnapshotFolder from "./snapshotFolder.ts"

export interface SourcesOptions {
  readonly log: Pick<SharedLogShape, "logId">
  readonly peers: HttpSnapshots.PeersOptions["members"]
  readonly schedulerId: string
  readonly peerSecret: () => Redacted.Redacted<string> | undefined
  readonly snapshotFolder: string | undefined
  readonly snapshotIntervalSecs: number
  readonly snapshotTimeoutSecs: number
}

export const make = (options: SourcesOptions): Effect.Effect<SnapshotsShape, StartFault, HttpClient.HttpClient> =>
  Effect.gen(function* () {
    const { log, schedulerId, snapshotFolder, snapshotIntervalSecs, snapshotTimeoutSecs } = options
    const peers = yield* HttpSnapshots.make({
      members: options.peers,
      secret: options.peerSecret,
      answerMs: snapshotTimeoutSecs * 1000
    })
    if (snapshotFolder === undefined) return peers
    const folder = yield* Effect.mapError(
      SnapshotFolder.make({
        folder: snapshotFolder,
        logId: log.logId,
        name: schedulerId,
        intervalMs: snapshotIntervalSecs * 1000
      }),
      ({ message }) => new StartFault({ exitCode: 1, message })
    )
    return firstOf([folder, peers])
  })
