/**
 * What the views service does for an SSP that holds some tables and not others (D61): it says what each view needs,
 * applies what the feed brings, and takes tables in and out.
 *
 * Between it and the feed, so that neither the engine nor the views know that there are other tables.
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
import type { Committer, Work } from "./committer.ts"
import { type ParsedQueries, queryOf } from "./registering.ts"

/** What is told of views, and asked before one is filled. */
interface Needs {
  /** Waits until all tables of an interest are held; they stay so until the answer is called. */
  readonly hold: (interest: Interest.Interest) => Effect.Effect<() => void, TablesJoining | Overloaded>
  readonly put: (view: string, interest: Interest.Interest) => void
  readonly dropped: (view: string) => void
  readonly held: () => HeldTables | undefined
}

/** The tables that are held whole, by an SSP that follows the feed. */
export interface HeldTables {
  readonly isAll: boolean
  readonly tables: ReadonlyArray<string>
}

/** Changes of the scheduler's feed, proven to be all there are of the tables held here. */
export interface Fed {
  readonly changes: ReadonlyArray<Change>
  /** All of them are one step. */
  readonly asOne: boolean
  readonly position: Omit<StoredPosition, "writes">
}

export interface ViewTablesShape {
  /** From now on `needs` is told of every view, and asked. */
  readonly follow: (needs: Needs) => void
  /** Undefined where every table is held and changes are sent. */
  readonly held: () => HeldTables | undefined
  /** What a registration that is stored needs. */
  readonly interestOf: (stored: StoredView) => Interest.Interest
  /** Applies what the feed brings, and stands at its position then. */
  readonly apply: (fed: Fed) => Effect.Effect<void, IngestError>
  /** Puts the records of a table in place that no view reads. */
  readonly load: (records: ReadonlyArray<FedRecord>) => Effect.Effect<void>
  /** The changes that make the records of a table held here those given. */
  readonly differences: (table: string, records: ReadonlyArray<FedRecord>) => ReadonlyArray<Change>
  /** Forgets the records of a table; false: something may read it still. */
  readonly forget: (table: string) => Effect.Effect<boolean>
}

/** How changes are applied, and all who follow views are told. */
type Submit = (
  work: Pick<Work, "asOne" | "changes" | "through">,
  done: (answer: IngestAnswer | IngestError) => void
) => void

/** Records looked at between two pauses. */
const stride = 500

function* load(engine: Engine, records: ReadonlyArray<FedRecord>): Slices<void> {
  let n = 0
  for (const { doc, id, version } of records) {
    if (doc !== undefined) engine.bring(id, version, doc)
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

  /** A query that is refused needs nothing. */
  interest({ params, surql }: Pick<ViewRegistration, "params" | "surql">): Interest.Interest {
    const parsed = this.queries.parse(surql)
    if (Either.isLeft(parsed)) return Interest.nothing
    const typed = this.queries.paramsOf(parsed.right, params)
    return Either.isLeft(typed) ? Interest.nothing : Interest.interestOf(parsed.right.select, typed.right)
  }

  readonly interestOf = (stored: StoredView): Interest.Interest => this.interest(queryOf(stored))

  /** Does `work` while the tables of a query are held. */
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

  readonly apply = ({ asOne, changes, position }: Fed): Effect.Effect<void, IngestError> =>
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

  /** With no change, no filling and no registration beside it. It closes when the process is on its way down. */
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
