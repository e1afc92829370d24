/**
 * The order in which every store lists jobs: last changed first.
 *
 * A page continues behind a place, which is the time and id of its last job, not the id alone: that job may have
 * changed since and stand elsewhere. Jobs that change meanwhile move to the front, so no page shows a job twice, and
 * none leaves out an unchanged one.
 */
import * as Datetimes from "../../core/surql/values/datetime.ts"
import { compareRecords } from "../../core/surql/values/order.ts"
import * as Ids from "../../core/surql/values/recordId.ts"
import { Datetime, type Value } from "../../core/surql/values/value.ts"
import type { JobListPosition } from "../../ports/JobStore.ts"

/** `updated_at` of a job record; undefined unless a datetime. */
export const updatedAtOf = (value: Value): Datetime | undefined => (value instanceof Datetime ? value : undefined)

/** Negative: `a` is listed before `b`. */
export const compare = (a: JobListPosition, b: JobListPosition): number => {
  if (a.at !== undefined && b.at !== undefined)
    return b.at.seconds - a.at.seconds || b.at.nanos - a.at.nanos || compareRecords(b.ref, a.ref)
  return a.at === b.at ? compareRecords(b.ref, a.ref) : a.at === undefined ? 1 : -1
}

const never = "-"

/** A place as text, for the request of the next page. */
export const cursor = ({ at, ref }: JobListPosition): string =>
  `${at === undefined ? never : Datetimes.render(at)} ${ref.text}`

/** Parses {@link cursor}. */
export const parse = (text: string): JobListPosition | undefined => {
  const end = text.indexOf(" ")
  const at = end < 0 || text.slice(0, end) === never ? undefined : Datetimes.parse(text.slice(0, end))
  const ref = Ids.parse(text.slice(end + 1))
  return end < 0 || ref === undefined || (at === undefined && text.slice(0, end) !== never) ? undefined : { at, ref }
}

/** Collects the first `size` jobs in list order. O(n log size) for n jobs, and memory for two pages. */
export class JobPage<A extends JobListPosition> {
  private found: Array<A> = []

  constructor(private readonly size: number) {}

  add(one: A): void {
    if (this.found.push(one) >= 2 * this.size) this.cut()
  }

  get jobs(): ReadonlyArray<A> {
    this.cut()
    return this.found
  }

  private cut(): void {
    this.found = this.found.sort(compare).slice(0, this.size)
  }
}
