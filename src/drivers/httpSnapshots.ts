/**
 * Snapshots from the other schedulers of a log, over HTTP: `GET /replica` of the members of the log.
 *
 * Standbys are asked before the leader, which has other work. This source stores no snapshots.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpClient from "@effect/platform/HttpClient"
import * as HttpClientRequest from "@effect/platform/HttpClientRequest"
import type * as HttpClientResponse from "@effect/platform/HttpClientResponse"
import { Duration, Effect, type Redacted, Stream } from "effect"
import { bearerOf } from "../node/http/bearer.ts"
import type { LogMember } from "../ports/SharedLog.ts"
import { type Snapshot, SnapshotFailed, type SnapshotOffer, type SnapshotsShape } from "../ports/Snapshots.ts"
import * as Wire from "../protocol/replicaFile.ts"
import { snapshotSeqHeader } from "../protocol/wire.ts"

export interface PeersOptions {
  /** Other schedulers of the log that announce themselves, and which of them leads. */
  readonly members: () => ReadonlyArray<LogMember & { readonly leads: boolean }>
  /** Secret of the other schedulers, read at each call. */
  readonly secret: () => Redacted.Redacted<string> | undefined
  /** Time until an answer begins; the other side hashes its file before. */
  readonly answerMs: number
}

/** An answer that is silent for so long has broken off. */
const silenceMs = 30_000

const failed = (message: string, reason: SnapshotFailed["reason"] = "failed"): SnapshotFailed =>
  new SnapshotFailed({ reason, message })

const seqIn = (text: string | undefined): number | undefined =>
  text !== undefined && /^\d{1,15}$/.test(text) ? Number(text) : undefined

const whyNot = (status: number): string =>
  status === 401 || status === 403
    ? `it answers ${status}: its SVC_SCHEDULER_AUTH_SECRET is not the one here`
    : `it answers ${status}`

const snapshotIn = ({
  headers,
  status,
  stream
}: HttpClientResponse.HttpClientResponse): Effect.Effect<Snapshot, SnapshotFailed> => {
  if (status !== 200) return Effect.fail(failed(whyNot(status), status === 503 ? "busy" : "failed"))
  const [logId, seq] = [headers[Wire.logIdHeader], seqIn(headers[snapshotSeqHeader])]
  const [bytes, sha256] = [seqIn(headers["content-length"]), Wire.sha256In(headers[Wire.digestHeader])]
  if (logId === undefined || seq === undefined || bytes === undefined || sha256 === undefined)
    return Effect.fail(failed("it answers no snapshot"))
  const content = stream.pipe(
    Stream.mapError(({ message }) => failed(`it broke off: ${message}`)),
    Stream.timeoutFail(() => failed(`it sent nothing for ${silenceMs} ms`), Duration.millis(silenceMs))
  )
  return Effect.succeed({ logId, seq, bytes, sha256, content })
}

export const make = ({
  answerMs,
  members,
  secret
}: PeersOptions): Effect.Effect<SnapshotsShape, never, HttpClient.HttpClient> =>
  Effect.map(HttpClient.HttpClient, (client) => {
    const open = (url: string): SnapshotOffer["open"] => {
      const own = secret()
      const headers = own === undefined ? {} : { authorization: bearerOf(own) }
      return client.execute(HttpClientRequest.make("GET")(`${url}/replica`, { headers })).pipe(
        Effect.provideService(FetchHttpClient.RequestInit, { redirect: "manual" }),
        Effect.mapError(({ message }) => failed(`it does not answer: ${message}`)),
        Effect.timeoutFail({
          duration: Duration.millis(answerMs),
          onTimeout: () => failed(`no answer within ${answerMs} ms`)
        }),
        Effect.flatMap(snapshotIn)
      )
    }
    return {
      offers: (atLeast) =>
        Effect.sync(() =>
          members()
            .filter(({ applied }) => applied >= atLeast)
            .sort((a, b) => Number(a.leads) - Number(b.leads) || b.applied - a.applied)
            .map(
              ({ name, url }): SnapshotOffer => ({ from: `${name} at ${url}`, open: Effect.suspend(() => open(url)) })
            )
        ),
      keep: () => Effect.succeed(undefined)
    }
  })
