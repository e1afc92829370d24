/**
 * The records that were written or looked up last, as they are now: what ingest asks for again and again.
 *
 * A change of a record is mostly followed by another of the same; looking it up in the file costs as much as half a commit. Bounded by entries and by the length of their
 * contents; who has not been asked for the longest time goes first.
 */
import type { ReplicaRecord } from "./Replica.ts"

interface Entry {
  readonly record: ReplicaRecord
  readonly chars: number
}

export class RecentRecords {
  private readonly entries = new Map<string, Entry>()
  private readonly maxEntries: number
  private readonly maxChars: number
  private chars = 0

  constructor(maxEntries: number, maxChars: number) {
    this.maxEntries = maxEntries
    this.maxChars = maxChars
  }

  get(id: string): ReplicaRecord | undefined {
    const found = this.entries.get(id)
    if (found === undefined) return undefined
    // Last asked for, last to go.
    this.entries.delete(id)
    this.entries.set(id, found)
    return found.record
  }

  put(record: ReplicaRecord, chars: number): void {
    const { text } = record.id
    this.chars += chars - (this.entries.get(text)?.chars ?? 0)
    this.entries.delete(text)
    this.entries.set(text, { record, chars })
    for (const [oldest, { chars: weight }] of this.entries) {
      if (this.entries.size <= this.maxEntries && this.chars <= this.maxChars) return
      this.entries.delete(oldest)
      this.chars -= weight
    }
  }

  clear(): void {
    this.entries.clear()
    this.chars = 0
  }
}
