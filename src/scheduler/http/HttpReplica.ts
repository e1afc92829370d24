/**
 * `GET /replica`: this scheduler's replica as a file, for the other schedulers of its log.
 *
 * Position and hash come before the first byte. The state is frozen until the answer is sent.
 */
import { Effect } from "effect"
import { overloaded } from "../../node/http/answers.ts"
import { ReplicaFile, type SnapshotFailed } from "../../ports/Snapshots.ts"
import * as Wire from "../../protocol/replicaFile.ts"
import { snapshotSeqHeader } from "../../protocol/wire.ts"

const retryAfterSecs = 2

const toWire = ({ message, reason }: SnapshotFailed) =>
  reason === "busy" ? overloaded({ message, retryAfterSecs }) : { code: "REPLICA_FAILED" as const, message }

/** Answers for the log of this id, within the scope of the request. */
export const make = Effect.map(
  ReplicaFile,
  (own) => (logId: string) =>
    own === undefined
      ? Effect.fail({ code: "NOT_FOUND" as const, message: "the replica of this scheduler is in no file" })
      : Effect.mapBoth(own.snapshot(logId), {
          onFailure: toWire,
          onSuccess: ({ bytes, content, seq, sha256 }) => ({
            status: 200,
            headers: {
              "content-type": Wire.contentType,
              "content-length": String(bytes),
              [snapshotSeqHeader]: String(seq),
              [Wire.logIdHeader]: logId,
              [Wire.digestHeader]: Wire.digestOf(sha256)
            },
            flow: content
          })
        })
)
