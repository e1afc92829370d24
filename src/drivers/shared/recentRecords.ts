/**
 * The records that were looked up last, as they are now: what ingest asks for again and again.
 *
 * A record that changes twice mostly goes on to; looking it up in the file costs as much as half a commit. A record
 * that has only come is not kept: most are not seen again soon, and objects that live that long cost the garbage
 * collector more than a lookup. Bounded by entries and by the length of their contents; the record that has not been
 * asked for the longest time goes first.
 */
import type { ReplicaRecord } from "../../ports/Replica.ts"

/**
 * In the order in which they were asked for; a list of its own, because a map looks past everything it has deleted
 * whenever its oldest is wanted.
 */
interface Entry {
  record: ReplicaRecord
  chars: number
  older: Entry | undefined
  newer: Entry | undefined
}

export class RecentRecords {
  private readonly entries = new Map<string, Entry>()
  private oldest: Entry | undefined
  private newest: Entry | undefined
  private chars = 0

  constructor(
    private readonly maxEntries: number,
    private readonly maxChars: number
  ) {}

  get(id: string): ReplicaRecord | undefined {
    const found = this.entries.get(id)
    if (found === undefined) return undefined
    // Last asked for, last to go.
    this.take(found)
    this.append(found)
    return found.record
  }

  /** The new state of a record, should it be one that is kept. */
  renew(record: ReplicaRecord, chars: number): void {
    if (this.entries.has(record.id.text)) this.put(record, chars)
  }

  put(record: ReplicaRecord, chars: number): void {
    const { text } = record.id
    const known = this.entries.get(text)
    if (known !== undefined) this.take(known)
    const entry = known ?? { record, chars: 0, older: undefined, newer: undefined }
    this.chars += chars - entry.chars
    entry.record = record
    entry.chars = chars
    if (known === undefined) this.entries.set(text, entry)
    this.append(entry)
    while (this.oldest !== undefined && (this.entries.size > this.maxEntries || this.chars > this.maxChars))
      this.drop(this.oldest)
  }

  clear(): void {
    this.entries.clear()
    this.oldest = this.newest = undefined
    this.chars = 0
  }

  private append(entry: Entry): void {
    entry.older = this.newest
    if (this.newest === undefined) this.oldest = entry
    else this.newest.newer = entry
    this.newest = entry
  }

  private take(entry: Entry): void {
    if (entry.older === undefined) this.oldest = entry.newer
    else entry.older.newer = entry.newer
    if (entry.newer === undefined) this.newest = entry.older
    else entry.newer.older = entry.older
    entry.older = entry.newer = undefined
  }

  private drop(entry: Entry): void {
    this.take(entry)
    this.entries.delete(entry.record.id.text)
    this.chars -= entry.chars
  }
}
