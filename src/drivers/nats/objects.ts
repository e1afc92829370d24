/**
 * Snapshots in an object store on the log's servers, laid out as NATS clients do (`nats object ls`): one stream, with
 * each object's pieces under one subject and its metadata under another.
 *
 * Metadata is written last, so an incomplete object has no name. The client's own object store is not used, because it
 * reads ahead without bound: here one piece is under way at a time, in both directions, and messages of the log pass
 * between two pieces.
 */
import { Clock, Effect, Option, Stream } from "effect"
import { type KeptContent, nameOf, type Snapshot, SnapshotFailed, type SnapshotStore } from "../../ports/Snapshots.ts"
import type { WalFailed } from "../../ports/Wal.ts"
import * as Frame from "./frame.ts"
import type { Answer, Link, MessageHeaders, Stored } from "./link.ts"
import * as Streams from "./streams.ts"

interface ObjectsOptions extends Streams.StreamOptions {
  readonly newId: () => string
}

/** Metadata of an object, the fields used here. */
interface Meta {
  readonly name: string
  /** Id in the subject of the object's pieces. */
  readonly nuid: string
  readonly size: number
  readonly deleted?: boolean
}

/** Age at which pieces without metadata belong to a writer that has died. */
const abandonedMs = 600_000

const bucketOf = (log: string): string => `svc-snapshots-${log}`

export const streamOf = (log: string): string => `OBJ_${bucketOf(log)}`

const piecesOf = (log: string, id: string): string => `$O.${bucketOf(log)}.C.${id}`

const encoded = (bytes: Uint8Array | string): string =>
  Buffer.from(bytes).toString("base64").replaceAll("+", "-").replaceAll("/", "_")

const metaOf = (log: string, name: string): string => `$O.${bucketOf(log)}.M.${encoded(name)}`

const config = (log: string) => ({
  ...Streams.unlimited,
  name: streamOf(log),
  subjects: [piecesOf(log, ">"), `$O.${bucketOf(log)}.M.>`],
  allow_rollup_hdrs: true,
  allow_direct: true
})

/** Undefined: there is no metadata, or the object was deleted by hand. */
const metaIn = ({ data }: Stored): Meta | undefined => {
  try {
    const { deleted, name, nuid, size } = JSON.parse(Frame.textOf(data)) as Meta
    if (typeof name !== "string" || typeof nuid !== "string" || !/^[^.*>\s]+$/.test(nuid)) return undefined
    return Number.isSafeInteger(size) && deleted !== true ? { name, nuid, size } : undefined
  } catch {
    return undefined
  }
}

const trying = <A>(log: string, asking: Effect.Effect<A, WalFailed>): Effect.Effect<A, SnapshotFailed> =>
  Effect.mapError(
    asking,
    ({ message, reason }) =>
      new SnapshotFailed({
        reason: reason === "full" || reason === "damaged" ? reason : "failed",
        message: `the snapshots in ${streamOf(log)} (SVC_SNAPSHOT_URL): ${message}`
      })
  )

class Objects implements SnapshotStore {
  private readonly log: string
  private readonly stream: string
  private readonly newId: () => string

  constructor(
    private readonly link: Link,
    { log, newId }: ObjectsOptions
  ) {
    this.log = log
    this.stream = streamOf(log)
    this.newId = newId
  }

  readonly shown: SnapshotStore["shown"] = (name) => `${this.stream}/${name}`

  private api(command: string, body: object): Effect.Effect<Answer, SnapshotFailed> {
    return trying(this.log, this.link.asked(`${command}.${this.stream}`, body))
  }

  private get(query: object): Effect.Effect<Stored | undefined, SnapshotFailed> {
    return trying(this.log, this.link.again(this.link.get(this.stream, query)))
  }

  /** Retried under one message id, so that the server stores it once. */
  private put(
    subject: string,
    data: Uint8Array | string,
    id: string,
    more?: MessageHeaders
  ): Effect.Effect<void, SnapshotFailed> {
    return trying(this.log, this.link.again(this.link.tell(subject, data, { "Nats-Msg-Id": id, ...more })))
  }

  private subjects(filter: string): Effect.Effect<ReadonlyArray<string>, SnapshotFailed> {
    return Effect.map(this.api("STREAM.INFO", { subjects_filter: filter }), ({ state }) =>
      Object.keys((state as { readonly subjects?: object }).subjects ?? {})
    )
  }

  private last(subject: string): Effect.Effect<Stored | undefined, SnapshotFailed> {
    return this.get({ last_by_subj: subject })
  }

  /**
   * Deletes all messages of a subject one by one: NATS 2.9 does not give the space of purged messages back to the
   * account, which the log shares.
   */
  private clear(subject: string): Effect.Effect<void, SnapshotFailed> {
    return Effect.gen(this, function* () {
      let from = 1
      while (true) {
        const found = yield* this.get({ seq: from, next_by_subj: subject })
        if (found === undefined) return
        yield* trying(this.log, this.link.again(this.link.drop(this.stream, found.seq)))
        from = found.seq + 1
      }
    })
  }

  private readonly metas: Effect.Effect<ReadonlyArray<Meta>, SnapshotFailed> = Effect.suspend(() =>
    Effect.flatMap(this.subjects(`$O.${bucketOf(this.log)}.M.>`), (subjects) =>
      Effect.map(
        Effect.forEach(subjects, (subject) => this.last(subject)),
        (found) => found.flatMap((each) => (each && metaIn(each)) ?? [])
      )
    )
  )

  readonly names: SnapshotStore["names"] = Effect.map(this.metas, (all) => all.map(({ name }) => name))

  private found(name: string): Effect.Effect<Meta & { readonly at: number }, SnapshotFailed> {
    return Effect.flatMap(this.last(metaOf(this.log, name)), (stored) => {
      const meta = stored && metaIn(stored)
      return stored === undefined || meta === undefined
        ? new SnapshotFailed({ reason: "failed", message: `${this.shown(name)} is not there any more` })
        : Effect.succeed({ ...meta, at: stored.at })
    })
  }

  private content({ name, nuid, size }: Meta): KeptContent["content"] {
    const subject = piecesOf(this.log, nuid)
    return Stream.unfoldEffect({ seq: 1, bytes: 0 }, ({ bytes, seq }) => {
      if (bytes >= size) return Effect.succeedNone
      return Effect.flatMap(this.get({ seq, next_by_subj: subject }), (piece) =>
        piece === undefined
          ? new SnapshotFailed({
              reason: "damaged",
              message: `${this.shown(name)} ends at ${bytes} of ${size} bytes`
            })
          : Effect.succeed(Option.some([piece.data, { seq: piece.seq + 1, bytes: bytes + piece.data.length }] as const))
      )
    })
  }

  readonly open = (name: string): Effect.Effect<KeptContent, SnapshotFailed> =>
    Effect.map(this.found(name), (meta) => ({ bytes: meta.size, writtenAt: meta.at, content: this.content(meta) }))

  readonly write: SnapshotStore["write"] = (snapshot) =>
    Effect.suspend(() => {
      const id = this.newId()
      const subject = piecesOf(this.log, id)
      // If the answer to the last message is lost, the pieces stay; without metadata the sweep removes them.
      return this.pieces(snapshot, id, subject).pipe(
        Effect.onError(() => Effect.ignore(this.clear(subject))),
        Effect.flatMap((chunks) => this.name(snapshot, id, chunks))
      )
    })

  private pieces({ content }: Snapshot, id: string, subject: string): Effect.Effect<number, SnapshotFailed> {
    return Effect.suspend(() => {
      let sent = 0
      const most = Streams.pieceBytes(this.link.connection.info!)
      const send = (piece: Uint8Array): Effect.Effect<void, SnapshotFailed> =>
        this.put(subject, piece, `${id}.${sent++}`)
      return Effect.map(
        Stream.runForEach(content, (piece) => Effect.forEach(Frame.split(piece, most), send, { discard: true })),
        () => sent
      )
    })
  }

  /**
   * Publishes a written snapshot under its name; an older object of the same name has the same bytes and is removed.
   */
  private name(snapshot: Snapshot, id: string, chunks: number): Effect.Effect<string, SnapshotFailed> {
    return Effect.gen(this, function* () {
      const name = nameOf(snapshot)
      const meta = {
        name,
        bucket: bucketOf(this.log),
        nuid: id,
        size: snapshot.bytes,
        chunks,
        digest: `SHA-256=${encoded(Buffer.from(snapshot.sha256, "hex"))}`,
        mtime: new Date(yield* Clock.currentTimeMillis).toISOString(),
        deleted: false
      }
      yield* this.put(metaOf(this.log, name), JSON.stringify(meta), id, { "Nats-Rollup": "sub" })
      return name
    })
  }

  /** Removes metadata first, so that every listed object is complete. */
  readonly remove: SnapshotStore["remove"] = (names) =>
    Effect.forEach(
      names,
      (name) =>
        Effect.flatMap(this.last(metaOf(this.log, name)), (stored) => {
          const meta = stored && metaIn(stored)
          const pieces = meta === undefined ? Effect.void : this.clear(piecesOf(this.log, meta.nuid))
          return Effect.zipRight(this.clear(metaOf(this.log, name)), pieces)
        }),
      { discard: true }
    )

  /** Metadata is read after the pieces, so that an object that is being completed meanwhile keeps its pieces. */
  readonly sweep: SnapshotStore["sweep"] = Effect.suspend(() =>
    Effect.gen(this, function* () {
      const all = yield* this.subjects(piecesOf(this.log, ">"))
      const used = new Set((yield* this.metas).map(({ nuid }) => piecesOf(this.log, nuid)))
      const now = yield* Clock.currentTimeMillis
      for (const subject of all) {
        if (used.has(subject)) continue
        const last = yield* this.last(subject)
        if (last !== undefined && now - last.at > abandonedMs) yield* this.clear(subject)
      }
    })
  )
}

/** Creates the object store of a log with as many copies as the log has. */
export const make = (link: Link, options: ObjectsOptions): Effect.Effect<SnapshotStore, SnapshotFailed> =>
  Effect.as(
    trying(options.log, Streams.ensureStream(link, config(options.log), options.replicas)),
    new Objects(link, options)
  )
