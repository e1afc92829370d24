/**
 * The first step of a start: brings the replica to the end of the log, or says why it cannot (D25, D26).
 *
 * The log is flushed before the replica moves, so after a crash the replica stands at or behind the log's end and the
 * events between are in the log. Any other state means that one of the two was lost or put back from a copy.
 */
import { Chunk, Effect, Either, Option, Stream } from "effect"
import type { Log } from "../../core/cluster/deliveryQueue.ts"
import type { Schema, Types } from "../../core/record/change.ts"
import * as Event from "../../core/record/event.ts"
import * as Definitions from "../../core/surreal/definitionsRecord.ts"
import type { WalRecord } from "../../core/wal/walFormat.ts"
import { Progress, type Step } from "../../ports/Progress.ts"
import { type Replica, type ReplicaRecord, type ReplicaShape, startFault } from "../../ports/Replica.ts"
import { StartFault } from "../../ports/StartFault.ts"
import { type WalShape, startFault as walFault } from "../../ports/Wal.ts"
import type { SchedulerConfigShape } from "../Config.ts"
import { definitionsInReplica } from "./DeclaredTables.ts"

/** Events committed to the replica at once. */
const step = 2000

type Paths = Pick<SchedulerConfigShape, "replicaDbPath" | "walPath">

const unusable = (message: string): StartFault => new StartFault({ exitCode: 3, message })

/** The types by which events are replayed; definitions in the log count for the events behind them. */
class Declarations {
  private types: ReadonlyMap<string, Types> = new Map()

  declare(tables: ReadonlyArray<{ readonly name: string; readonly types: Types }>): void {
    this.types = new Map(tables.map(({ name, types }) => [name, types]))
  }

  readonly schema: Schema = (table) => this.types.get(table)

  /** Adopts the types of a record that holds definitions, for the records behind it. */
  passed({ doc, id }: ReplicaRecord): void {
    const text = Definitions.isDefinitions({ id }) ? Definitions.textIn(doc) : undefined
    if (text !== undefined) this.declare(Definitions.ofText(text).tables)
  }
}

const recordOf = (
  json: string,
  seq: number,
  path: string,
  declared: Declarations
): Effect.Effect<ReplicaRecord, StartFault> =>
  Effect.suspend(() => {
    const read = Event.ofLine(json, declared.schema)
    if (Either.isLeft(read)) return unusable(`${path}: seq ${seq} is no record change: ${read.left.message}`)
    const { change, version } = read.right
    const record = { id: change.id, version, doc: change.op === "DELETE" ? undefined : change.doc }
    declared.passed(record)
    return Effect.succeed(record)
  })

/** Brings a replica forward by events of the log. */
export interface Replay {
  /** Applies consecutive events, at least one; answers the position of the last. */
  readonly apply: (events: Iterable<WalRecord>) => Effect.Effect<number, StartFault>
}

/** Types the events by the definitions in the replica, and then in the log. `path`: of the log, for faults. */
export const makeReplay = (path: string, replica: ReplicaShape): Effect.Effect<Replay, StartFault> =>
  Effect.map(Effect.mapError(definitionsInReplica(replica), startFault), ({ tables }) => {
    const declared = new Declarations()
    declared.declare(tables)
    return {
      apply: (events) =>
        Effect.gen(function* () {
          const records: Array<ReplicaRecord> = []
          let through = 0
          for (const { json, seq } of events) {
            records.push(yield* recordOf(json, seq, path, declared))
            through = seq
          }
          yield* Effect.mapError(replica.commit({ records, through }), startFault)
          return through
        })
    }
  })

/** Applies all events behind `applied`; answers their number. */
const replay = (
  wal: WalShape,
  applied: number,
  replaying: Replay,
  told: Pick<Step, "add">
): Effect.Effect<number, StartFault> =>
  wal.read(applied).pipe(
    Stream.mapError(walFault),
    Stream.grouped(step),
    Stream.mapEffect((events) =>
      Effect.map(replaying.apply(events), () => {
        told.add(Chunk.size(events))
        return Chunk.size(events)
      })
    ),
    Stream.runSum
  )

/**
 * Position of the log's end. A log that ends within a step gets the step's end appended: its writer died before it
 * answered, and SSPs would wait for the rest for ever.
 */
const whole = (wal: WalShape): Effect.Effect<number, StartFault> =>
  Effect.gen(function* () {
    const head = yield* wal.lastSeq
    if (head <= (yield* wal.keptAfter)) return head
    const last = yield* Stream.runLast(wal.read(head - 1))
    return Option.isSome(last) && Event.endsWithin(last.value.json) ? yield* wal.append([Event.stepEndLine]) : head
  }).pipe(Effect.mapError(walFault))

/**
 * Brings the replica to the log's end; answers the log's bounds. `canClone`: lost records can be cloned from the
 * database.
 */
export const recover = (
  paths: Paths,
  wal: WalShape,
  replica: typeof Replica.Service,
  canClone: boolean
): Effect.Effect<Log, StartFault> =>
  Effect.gen(function* () {
    const head = yield* whole(wal)
    const kept = yield* wal.keptAfter
    const applied = yield* Effect.mapError(replica.applied, startFault)
    const { replicaDbPath, walPath } = paths
    if (applied > head) {
      return yield* unusable(
        `the replica in ${replicaDbPath} stands at seq ${applied}, but the log at ${walPath} ends at ${head}: they are not of one piece. Put the log back, or move both away to begin anew`
      )
    }
    if (applied < kept) {
      if (!canClone) {
        return yield* unusable(
          `the replica in ${replicaDbPath} stands at seq ${applied}, but the log at ${walPath} begins at ${kept + 1}: what lies between is in neither. Put the replica back, or move both away to begin anew`
        )
      }
      yield* Effect.logWarning(
        `the replica stands at seq ${applied} and the log begins at ${kept + 1}: it is cloned anew`
      )
      yield* Effect.mapError(Effect.zipRight(replica.clear, replica.commit({ records: [], through: head })), startFault)
      return { first: kept + 1, head }
    }
    if (applied === head) return { first: kept + 1, head }
    const replays = yield* makeReplay(walPath, replica)
    const count = yield* Progress.during("recovery", "the replica from the log", "events", (step) => {
      step.expect(head - applied)
      return replay(wal, applied, replays, step)
    })
    yield* Effect.logInfo(`recovered ${count} events from the log, through seq ${head}`)
    return { first: kept + 1, head }
  })
