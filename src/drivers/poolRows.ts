/** What a scheduler keeps of its pool, as rows by kind and key: rows of writes, and the pool read from rows. */
import type { JobRow, MemberRow, QuarantineRow, StrayRow, ViewRow } from "../core/cluster/messages.ts"
import type { Saved } from "../core/cluster/pool.ts"
import { RecentResults, type Result } from "../core/job/result.ts"
import type { Opened, Write } from "../ports/PoolStore.ts"

type Kind = "member" | "view" | "quarantine" | "stray" | "job" | "result" | "meta"

/** A row to put, or with `value` undefined to delete; `under` deletes all keys that begin so. */
export interface Put {
  readonly kind: Kind
  readonly key: string
  readonly value: unknown
  readonly under?: true
}

const strayKey = ({ ssp, view }: Pick<StrayRow, "ssp" | "view">): string => JSON.stringify([ssp, view])

const putsOf = (write: Exclude<Write, { readonly tag: "PersistResult" }>): ReadonlyArray<Put> => {
  switch (write.tag) {
    case "PersistMember":
      return [{ kind: "member", key: write.row.ssp, value: write.row }]
    case "ForgetMember":
      return [
        { kind: "member", key: write.ssp, value: undefined },
        { kind: "stray", key: `${JSON.stringify([write.ssp]).slice(0, -1)},`, value: undefined, under: true }
      ]
    case "PersistView":
      return [{ kind: "view", key: write.row.view, value: write.row }]
    case "ForgetView":
      return [{ kind: "view", key: write.view, value: undefined }]
    case "PersistQuarantine":
      return [{ kind: "quarantine", key: write.row.query, value: write.row }]
    case "ForgetQuarantine":
      return [{ kind: "quarantine", key: write.query, value: undefined }]
    case "PersistStray":
      return [{ kind: "stray", key: strayKey(write.row), value: write.row }]
    case "ForgetStray":
      return [{ kind: "stray", key: strayKey(write.row), value: undefined }]
    case "PersistJob":
      return [{ kind: "job", key: write.row.job, value: write.row }]
    case "ForgetJob":
      return [{ kind: "job", key: write.job, value: undefined }]
  }
}

export interface Row {
  readonly kind: string
  readonly key: string
  readonly value: unknown
}

/** What JSON leaves out comes back as undefined. */
const whole = {
  member: (row: MemberRow): MemberRow => ({ ...row, incarnation: row.incarnation, jobTables: row.jobTables }),
  view: (row: ViewRow): ViewRow => ({ ...row, home: row.home, gone: row.gone === true }),
  job: (row: JobRow): JobRow => ({ ...row, home: row.home })
}

export const openedFrom = (rows: ReadonlyArray<Row>, logId: string): Opened => {
  const of = (kind: Kind): ReadonlyArray<unknown> => rows.filter((row) => row.kind === kind).map((row) => row.value)
  const meta = new Map(rows.filter((row) => row.kind === "meta").map((row) => [row.key, row.value]))
  const lastLogId = typeof meta.get("log") === "string" ? String(meta.get("log")) : undefined
  const sameLog = lastLogId === undefined || lastLogId === logId
  const saved: Saved = {
    members: sameLog ? (of("member") as ReadonlyArray<MemberRow>).map(whole.member) : [],
    views: (of("view") as ReadonlyArray<ViewRow>).map(whole.view),
    strays: sameLog ? (of("stray") as ReadonlyArray<StrayRow>) : [],
    jobs: (of("job") as ReadonlyArray<JobRow>).map(whole.job),
    quarantined: of("quarantine") as ReadonlyArray<QuarantineRow>
  }
  return { epoch: Number(meta.get("epoch") ?? 0) + 1, saved, lastLogId }
}

/** What an opening leaves behind. */
export const opening = ({ epoch, lastLogId }: Opened, logId: string): ReadonlyArray<Put> => [
  { kind: "meta", key: "epoch", value: epoch },
  { kind: "meta", key: "log", value: logId },
  ...(lastLogId === undefined || lastLogId === logId
    ? []
    : ([
        { kind: "member", key: "", value: undefined, under: true },
        { kind: "stray", key: "", value: undefined, under: true }
      ] as const))
]

/** A row of a result: `at` grows from one to the next, over restarts too. */
interface ResultRow {
  readonly at: number
  readonly result: Result
}

/** The results that are kept, in memory as in the rows: what makes room for another is deleted with the same write. */
export class Results {
  private recent = new RecentResults()
  private at = 0

  /** Takes over what the rows hold; answers what is to be deleted because there is no room for it any more. */
  open(rows: ReadonlyArray<Row>, maxResults: number | undefined): ReadonlyArray<Put> {
    this.recent = new RecentResults(maxResults)
    const kept = rows
      .filter(({ kind }) => kind === "result")
      .map(({ key, value }) => ({ key, ...(value as ResultRow) }))
      .sort((a, b) => a.at - b.at)
    this.at = kept.at(-1)?.at ?? 0
    return kept.flatMap(({ key, result }) => this.recent.put(key, result)).map(forgotten)
  }

  readonly of = (job: string): Result | undefined => this.recent.get(job)

  /** A write that fails is asked for again; what made room meanwhile is deleted at the next start, at the latest. */
  readonly puts = (write: Write): ReadonlyArray<Put> => {
    if (write.tag !== "PersistResult") return putsOf(write)
    const { job, result } = write
    const gone = this.recent.put(job, result).map(forgotten)
    return [
      result === undefined
        ? forgotten(job)
        : { kind: "result", key: job, value: { at: ++this.at, result } satisfies ResultRow },
      ...gone
    ]
  }
}

const forgotten = (job: string): Put => ({ kind: "result", key: job, value: undefined })
