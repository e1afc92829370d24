/**
 * A cache of the records that were looked up last, which ingest asks for again and again.
 *
 * A record that has changed twice will mostly change again, and a look-up in the file costs half a commit. A record
 * that was only created is not cached: most are not seen again soon, and long-lived objects cost the garbage collector
 * more than a look-up. Bounded by entries and by the length of their contents; the least recently used one goes first.
 */
import type { ReplicaRecord } from "../../ports/Replica.ts"

/**
 * Entries linked in order of use; a list of its own, because a map walks over all deleted entries to find its oldest.
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
    // Moves the entry to the end: it is dropped last.
    this.take(found)
    this.append(found)
    return found.record
  }

  /** Replaces the state of a record if it is cached. */
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
