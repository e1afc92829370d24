/**
 * Views that clients of this scheduler follow, anywhere in the cluster (D50): each comes once from its SSP, over few
 * connections.
 */
import { Context, Duration, Effect, FiberSet, Layer } from "effect"
import * as State from "../../core/cluster/state.ts"
import type { EventReceiver, Subscription } from "../../node/streams/feed.ts"
import type { StreamFormat } from "../../node/streams/sse.ts"
import { Serving } from "../../ports/Front.ts"
import { SspClient, type Target } from "../../ports/SspClient.ts"
import { steadyOf } from "../../ports/Turn.ts"
import type { WireError } from "../../protocol/errors.ts"
import { SchedulerConfig } from "../Config.ts"
import * as Errors from "../HttpErrors.ts"
import { Pool } from "../pool/Pool.ts"
import * as ViewOwner from "../pool/viewOwner.ts"
import { SharedView } from "./SharedView.ts"
import { SspStream, type SspStreamParts } from "./SspStream.ts"
import { type SourceParts, ViewSource } from "./ViewSource.ts"

const seekEvery = Duration.millis(100)
const checkEvery = Duration.seconds(1)

/** Most bytes of snapshots kept for later clients; beyond that the oldest is dropped. */
const mostKeptBytes = 64 * 1024 * 1024

/** The connections to SSPs. */
class SspStreams {
  private readonly all = new Set<SspStream>()
  private readonly parts: Omit<SspStreamParts, "format">

  constructor(
    parts: Omit<SspStreamParts, "format" | "tooMany">,
    /** Most views on one connection: the limit for clients of this scheduler, or a lower one of an SSP. */
    private room: number
  ) {
    this.parts = {
      ...parts,
      tooMany: (views) => {
        this.room = Math.max(1, Math.min(this.room, Math.floor(views / 2)))
      }
    }
  }

  at({ registration, ssp, url }: Target, format: StreamFormat): SspStream {
    for (const stream of this.all) {
      if (stream.isOver) this.all.delete(stream)
      else if (
        stream.target.ssp === ssp &&
        stream.target.registration === registration &&
        stream.format === format &&
        stream.live < this.room
      )
        return stream
    }
    const stream = new SspStream({ registration, ssp, url }, { ...this.parts, format })
    this.all.add(stream)
    return stream
  }

  /**
   * Closes streams to SSPs that are no longer members: a silent SSP keeps its connections, but its views have other
   * owners.
   */
  check(state: State.State): void {
    for (const stream of this.all) if (State.memberAt(state, stream.target) === undefined) stream.lose()
  }
}

/** Sources that wait for an owner of their view. Without any, no timer wakes the process. */
class Seeking {
  private readonly sources = new Set<ViewSource>()
  private readonly some = Effect.unsafeMakeLatch()

  add(source: ViewSource): void {
    this.sources.add(source)
    this.some.unsafeOpen()
  }

  delete(source: ViewSource): void {
    this.sources.delete(source)
    if (this.sources.size === 0) this.some.unsafeClose()
  }

  readonly looking: Effect.Effect<never> = Effect.forever(
    Effect.zipRight(
      this.some.await,
      Effect.delay(
        Effect.sync(() => {
          for (const source of this.sources) source.look()
        }),
        seekEvery
      )
    )
  )
}

export class FollowedViews extends Context.Tag("scheduler/streams/FollowedViews")<
  FollowedViews,
  {
    /** Follows a view behind the event `after`; the receiver gets nothing before `resume`. */
    readonly follow: (
      view: string,
      format: StreamFormat,
      after: string | undefined,
      receiver: EventReceiver
    ) => Subscription | WireError
  }
>() {
  static readonly layer = Layer.scoped(
    FollowedViews,
    Effect.gen(function* () {
      const { streamBuffer, streamViews } = yield* SchedulerConfig
      const pool = yield* Pool
      const client = yield* SspClient
      const clock = yield* Effect.clock
      const serving = yield* Serving
      const fibers = yield* FiberSet.makeRuntime<never>()
      const start = (work: Effect.Effect<void>): void => void fibers(Serving.guard(serving, work))
      const nowMs = steadyOf(clock)
      const streams = new SspStreams(
        {
          client,
          start,
          refused: ({ registration, ssp }) => start(pool.tell({ tag: "Refused", ssp, registration }))
        },
        streamViews
      )
      const seeking = new Seeking()
      const shared = new Map<string, SharedView>()
      let keptBytes = 0
      const weighs = (bytes: number): void => {
        keptBytes += bytes
        if (keptBytes > mostKeptBytes)
          for (const view of shared.values()) {
            if (keptBytes <= mostKeptBytes / 2) break
            view.forget()
          }
      }
      const share = (view: string, format: StreamFormat, after: string | undefined): SharedView => {
        const key = `${format} ${view}`
        const known = shared.get(key)
        if (known !== undefined) return known
        const around: SourceParts = {
          whereIs: (id) => ViewOwner.ownerOf(pool.state(), id),
          streamAt: (target) => streams.at(target, format),
          seeking,
          nowMs
        }
        const made: SharedView = new SharedView(
          {
            capacity: streamBuffer,
            source: (from, hearing) => new ViewSource(around, view, from, hearing),
            gone: () => {
              if (shared.get(key) === made) shared.delete(key)
            },
            weighs,
            nowMs
          },
          after
        )
        shared.set(key, made)
        return made
      }
      const check = Effect.sync(() => {
        streams.check(pool.state())
        for (const view of shared.values()) view.check()
      })
      yield* Serving.fork(seeking.looking)
      yield* Serving.fork(Effect.forever(Effect.delay(check, checkEvery)))
      return {
        follow: (view, format, after, receiver) => {
          const found = ViewOwner.ownerOf(pool.state(), view)
          if ("isGone" in found) return Errors.viewNotFound(view)
          return "refused" in found ? found.refused : share(view, format, after).follow(after, receiver)
        }
      }
    })
  )
}
