/**
 * The tables that views need, for an SSP that holds only some (D61): tells what each view needs, applies the feed's
 * changes, loads and forgets tables.
 *
 * Between the views and the feed, so that neither the engine nor the views know that other tables exist.
 */
import { Effect, Either } from "effect"
import type { Engine } from "../../core/ivm/engine.ts"
import type { Change } from "../../core/record/change.ts"
import type { FedRecord } from "../../core/record/tableFeed.ts"
import type { Slices } from "../../core/surql/evaluate/scope.ts"
import * as Interest from "../../core/surql/syntax/interest.ts"
import type { Slicer } from "../../node/work/Slicer.ts"
import type { StoredPosition, StoredView } from "../../ports/Database.ts"
import type { IngestAnswer, IngestError, Overloaded, TablesJoining, ViewRegistration } from "../viewTypes.ts"
import type { Committer, CommitWork } from "./committer.ts"
import { type ParsedQueries, queryOf } from "./registering.ts"

/** Told of every view, and asked for its tables before it is filled. */
interface Needs {
  /** Waits until all tables of an interest are held; they stay held until the returned function is called. */
  readonly hold: (interest: Interest.Interest) => Effect.Effect<() => void, TablesJoining | Overloaded>
  readonly put: (view: string, interest: Interest.Interest) => void
  readonly dropped: (view: string) => void
  readonly held: () => HeldTables | undefined
}

/** The tables that an SSP which follows the feed holds completely. */
export interface HeldTables {
  readonly isAll: boolean
  readonly tables: ReadonlyArray<string>
}

/** Changes of the scheduler's feed, known to be complete for the tables held here. */
export interface FeedStep {
  readonly changes: ReadonlyArray<Change>
  /** Whether the changes are one step. */
  readonly asOne: boolean
  readonly position: Omit<StoredPosition, "writes">
}

export interface ViewTablesShape {
  /** From now on `needs` is told of every view, and asked for its tables. */
  readonly follow: (needs: Needs) => void
  /** Undefined if every table is held and changes are pushed. */
  readonly held: () => HeldTables | undefined
  /** The tables that a stored registration needs. */
  readonly interestOf: (stored: StoredView) => Interest.Interest
  /** Applies changes of the feed and moves to its position. */
  readonly apply: (fed: FeedStep) => Effect.Effect<void, IngestError>
  /** Loads the records of a table that no view reads. */
  readonly load: (records: ReadonlyArray<FedRecord>) => Effect.Effect<void>
  /** The changes that turn the table's records here into the given ones. */
  readonly differences: (table: string, records: ReadonlyArray<FedRecord>) => ReadonlyArray<Change>
  /** Forgets the records of a table; false: a view may still read it. */
  readonly forget: (table: string) => Effect.Effect<boolean>
}

/** Applies changes and notifies the followers of the views. */
type Submit = (
  work: Pick<CommitWork, "asOne" | "changes" | "through">,
  done: (answer: IngestAnswer | IngestError) => void
) => void

/** Records loaded between two pauses. */
const stride = 500

function* load(engine: Engine, records: ReadonlyArray<FedRecord>): Slices<void> {
  let n = 0
  for (const { doc, id, version } of records) {
    if (doc !== undefined) engine.loadUnread(id, version, doc)
    if (++n % stride === 0) yield
  }
}

export class ViewTables implements ViewTablesShape {
  private readonly engine: Engine
  private readonly queries: ParsedQueries
  private readonly committer: Committer
  private readonly slicer: Slicer
  private readonly submit: Submit
  private needs: Needs | undefined

  constructor({
    committer,
    engine,
    queries,
    slicer,
    submit
  }: {
    readonly committer: Committer
    readonly engine: Engine
    readonly queries: ParsedQueries
    readonly slicer: Slicer
    readonly submit: Submit
  }) {
    this.submit = submit
    this.committer = committer
    this.engine = engine
    this.queries = queries
    this.slicer = slicer
  }

  readonly follow = (needs: Needs): void => {
    this.needs = needs
  }

  readonly held = (): HeldTables | undefined => this.needs?.held()

  /** The tables of a query; a refused query needs none. */
  interest({ params, surql }: Pick<ViewRegistration, "params" | "surql">): Interest.Interest {
    const parsed = this.queries.parse(surql)
    if (Either.isLeft(parsed)) return Interest.noInterest
    const typed = this.queries.paramsOf(parsed.right, params)
    return Either.isLeft(typed) ? Interest.noInterest : Interest.interestOf(parsed.right.select, typed.right)
  }

  readonly interestOf = (stored: StoredView): Interest.Interest => this.interest(queryOf(stored))

  /** Runs `work` while the tables of a query are held. */
  holding<A, E>(
    query: Pick<ViewRegistration, "params" | "surql">,
    work: Effect.Effect<A, E>
  ): Effect.Effect<A, E | TablesJoining | Overloaded> {
    return Effect.suspend(() =>
      this.needs === undefined
        ? work
        : Effect.flatMap(this.needs.hold(this.interest(query)), (release) =>
            Effect.ensuring(work, Effect.sync(release))
          )
    )
  }

  put(stored: StoredView): void {
    this.needs?.put(stored.key, this.interestOf(stored))
  }

  dropped(view: string): void {
    this.needs?.dropped(view)
  }

  readonly apply = ({ asOne, changes, position }: FeedStep): Effect.Effect<void, IngestError> =>
    Effect.async((resume) =>
      this.submit({ changes, asOne, through: position }, (answer) =>
        resume("_tag" in answer ? Effect.fail(answer) : Effect.void)
      )
    )

  readonly load = (records: ReadonlyArray<FedRecord>): Effect.Effect<void> =>
    this.alone(() => load(this.engine, records))

  readonly differences = (table: string, records: ReadonlyArray<FedRecord>): ReadonlyArray<Change> => {
    const { store } = this.engine
    const change = (
      op: Change["op"],
      id: FedRecord["id"],
      doc: Change["doc"],
      version: number | undefined
    ): Change => ({
      op,
      id,
      doc,
      version,
      position: undefined,
      jobAssignee: undefined
    })
    const left = new Map(Array.from(store.rows(table), ({ id }) => [id.text, id]))
    const changes: Array<Change> = []
    for (const { doc, id, version } of records) {
      if (doc === undefined) continue
      left.delete(id.text)
      changes.push(change("UPDATE", id, doc, version))
    }
    for (const id of left.values()) changes.push(change("DELETE", id, { id }, undefined))
    return changes
  }

  readonly forget = (table: string): Effect.Effect<boolean> =>
    Effect.suspend(() => {
      const { store } = this.engine
      if (!store.isUnread(table)) return Effect.succeed(false)
      return Effect.as(
        this.alone(() => store.forgetTable(table)),
        true
      )
    })

  /** Runs slices while no change, fill or registration is under way; interrupted when the process stops. */
  private alone(make: () => Slices<void>): Effect.Effect<void> {
    return this.committer.alone(
      Effect.catchTag(
        this.slicer.alone(() => {}, make),
        "Closed",
        () => Effect.interrupt
      )
    )
  }
}
