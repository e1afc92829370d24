/**
 * Runs statements over one state of the replica and writes the answer as bytes: the plain or the exact answer of
 * `/proxy/query`.
 *
 * A run is a generator that pauses every few rows, so that it never blocks ingest. A plain read of a stretch of a
 * table, as every bootstrap does, copies the stored text without decoding it; everything else goes through the
 * evaluator.
 */
import { Either } from "effect"
import { versionField } from "../../core/record/change.ts"
import { limits, queryBudget, type Scope, type Slices } from "../../core/surql/evaluate/scope.ts"
import { equalities, type KeyScan, keyScan, readsOnce, showsAll } from "../../core/surql/evaluate/select/keyScan.ts"
import {
  evaluateSliced,
  type Options,
  type SelectedRow,
  selectRowsSliced
} from "../../core/surql/evaluate/select/select.ts"
import type { Field, Idiom, Select, Statement } from "../../core/surql/syntax/ast.ts"
import * as Encode from "../../core/surql/values/encode.ts"
import * as Json from "../../core/surql/values/json.ts"
import { type Datetime, isObj, type Value } from "../../core/surql/values/value.ts"
import { exactNotation, plainNotation, writerOf } from "../../core/surql/written/sliced.ts"
import { docOf, idOf } from "../../node/database/replicaRecord.ts"
import type { ReplicaRow, ReplicaSnapshot } from "../../ports/Replica.ts"
import { type ReplicaSource, sourceOf } from "./replicaSource.ts"

export interface Limits {
  readonly queryRows: number
  readonly querySteps: number
  readonly rowSteps: number
  readonly queryBytes: number
}

interface Run {
  readonly snapshot: ReplicaSnapshot
  readonly params: { readonly [name: string]: Value }
  readonly limits: Limits
  readonly now: Datetime
  /** Whether the answer is in the exact encoding. */
  readonly exact: boolean
}

/** Why a statement fails; ends the run. */
class Failed {
  constructor(readonly reason: string) {}
}

/** Rows between two pauses. */
const pauseAfter = 128

/** Characters gathered before they are encoded: a short chunk takes more memory than its length. */
const chunkChars = 65_536

const encoder = new TextEncoder()

/** The answer so far, as bytes outside the heap, so that no two copies of a long text are in it. */
class Output {
  private readonly chunks: Array<Uint8Array> = []
  private pieces: Array<string> = []
  private open = 0
  private length = 0

  constructor(private readonly most: number) {}

  add(text: string): void {
    this.pieces.push(text)
    this.open += text.length
    if (this.open > chunkChars) this.keep()
  }

  /** The whole answer, in pieces. */
  bytes(): ReadonlyArray<Uint8Array> {
    this.keep()
    return this.chunks
  }

  private keep(): void {
    const chunk = encoder.encode(this.pieces.join(""))
    this.pieces = []
    this.open = 0
    this.length += chunk.length
    if (this.length > this.most)
      throw new Failed(
        `The answer is longer than ${this.most} bytes; ask for fewer rows at once (LIMIT), or raise ${limits.queryBytes.setting} to allow it`
      )
    this.chunks.push(chunk)
  }
}

const tooMany = (rows: number): never => {
  throw new Failed(`The query gives more than ${rows} rows; raise ${limits.queryRows.setting} to allow it`)
}

const typed = '{"$":['

/** A stored row as text, with its id, and in an exact answer with its version (D4). */
const rowText = (row: ReplicaRow, exact: boolean): string => {
  const { content, id, version } = row
  if (content.startsWith(typed) || (!exact && content.includes(typed)))
    return exact ? Encode.encode({ ...docOf(row), [versionField]: version }) : Json.stringify(docOf(row))
  const own = exact ? `${Encode.encode(idOf(row))},"${versionField}":${version}` : JSON.stringify(id)
  return `{"id":${own}${content === "{}" ? "}" : `,${content.slice(1)}`}`
}

function* scanned(
  out: Output,
  scan: KeyScan,
  { exact, limits: { queryRows, querySteps }, snapshot }: Run
): Slices<void> {
  const most = Math.min(scan.limit, queryRows + 1)
  let seen = 0,
    shown = 0
  out.add("[")
  if (most > 0) {
    for (const row of snapshot.rows(scan.table, scan.range, { atMost: scan.start + most })) {
      if (++seen % pauseAfter === 0) yield
      if (seen > querySteps)
        throw new Failed(
          `The query needs more than ${querySteps} steps; raise ${limits.querySteps.setting} to allow it`
        )
      if (seen <= scan.start || row === undefined) continue
      if (++shown > queryRows) tooMany(queryRows)
      out.add((shown === 1 ? "" : ",") + rowText(row, exact))
    }
  }
  out.add("]")
}

const isVersion = ({ parts, start }: Idiom): boolean =>
  start === undefined && parts.length === 1 && parts[0]!.kind === "field" && parts[0]!.name === versionField

const namesVersion = (field: Field): boolean =>
  field.kind === "expr" && field.expr.kind === "idiom" && isVersion(field.expr)

/**
 * Whether rows carry their version (D4): rows of `SELECT *`; in a plain answer only if the query names the version too,
 * because an SSP of the specification takes every field for the record's.
 */
const carriesVersion = ({ fields, group, omit, value }: Select, exact: boolean): boolean =>
  !value &&
  group === undefined &&
  fields.some(({ kind }) => kind === "all") &&
  (exact ? !omit.some(isVersion) : fields.some(namesVersion))

const withVersion = ({ record, value }: SelectedRow, source: ReplicaSource): Value => {
  const version = record && source.version(record)
  return version === undefined || !isObj(value) ? value : { ...value, [versionField]: version }
}

const right = <A>(result: Either.Either<A, { readonly reason: string }>): A => {
  if (Either.isRight(result)) return result.right
  throw new Failed(result.left.reason)
}

function* selected(out: Output, select: Select, options: Options, source: ReplicaSource, exact: boolean): Slices<void> {
  const { rows } = right(yield* selectRowsSliced(select, options))
  const show = carriesVersion(select, exact)
    ? (row: SelectedRow) => withVersion(row, source)
    : ({ value }: SelectedRow) => value
  const write = writerOf(exact ? exactNotation : plainNotation, (text) => out.add(text))
  if (select.only) return yield* write(rows[0] && show(rows[0]))
  out.add("[")
  for (let i = 0; i < rows.length; i++) {
    if (i > 0) out.add(",")
    yield* write(show(rows[i]!))
  }
  out.add("]")
}

function* answered(out: Output, statement: Statement, run: Run): Slices<void> {
  const {
    exact,
    limits: { queryBytes, queryRows, querySteps, rowSteps },
    now,
    params,
    snapshot
  } = run
  const budget = queryBudget(querySteps, rowSteps, queryBytes)
  const source = sourceOf(snapshot, budget, exact)
  const options: Options = { source, params, budget, now, maxRows: queryRows }
  if (statement.kind !== "select") {
    const value = right(yield* evaluateSliced(statement, options))
    return yield* writerOf(exact ? exactNotation : plainNotation, (text) => out.add(text))(value)
  }
  const scope: Scope = { doc: undefined, params, parent: undefined, source, budget, now }
  const scan = keyScan(statement, scope)
  if (scan !== undefined && showsAll(statement)) return yield* scanned(out, scan, run)
  if (readsOnce(statement)) {
    if (scan !== undefined) source.narrow([], scan.start + Math.min(scan.limit, queryRows + 1))
    else source.narrow(equalities(statement, scope), Infinity)
  }
  yield* selected(out, statement, options, source, exact)
}

/** One value, or an array of them for several statements. Left: why one failed. */
export function* answer(
  statements: ReadonlyArray<Statement>,
  run: Run
): Slices<Either.Either<ReadonlyArray<Uint8Array>, string>> {
  const out = new Output(run.limits.queryBytes)
  try {
    if (statements.length !== 1) out.add("[")
    for (let i = 0; i < statements.length; i++) {
      if (i > 0) out.add(",")
      yield* answered(out, statements[i]!, run)
    }
    if (statements.length !== 1) out.add("]")
    return Either.right(out.bytes())
  } catch (error) {
    if (error instanceof Failed) return Either.left(error.reason)
    throw error
  }
}
