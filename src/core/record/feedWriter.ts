/**
 * The lines that a scheduler writes into a feed of some tables (D61): their events, and watermarks for skipped
 * positions.
 *
 * A reader holds the changes of a step back until the step's end (D44). If the end belongs to another table, a
 * watermark stands for it; no watermark is written within a step. So a reader needs to know nothing of other tables.
 */
import * as FeedLines from "./feedLines.ts"

/** A position of the log with what the feed needs of it. */
export interface Entry {
  readonly table: string
  /** The next position belongs to the same step. */
  readonly continues: boolean
  /** The complete line with its line break. */
  readonly line: string
}

/** Skipped positions after which a watermark is written at once. */
export const mostSkipped = 500

export class FeedWriter {
  /** Position through which the log was looked at. */
  looked: number
  /** Position of the last event written. */
  private written: number
  /** Position through which the written lines tell the reader that it has everything. */
  private told: number
  /** The step of the last written event may continue after `looked`. */
  private isWithin = true
  private isOpen = true

  /** `after` may lie within a step of which the reader has a part. */
  constructor(
    after: number,
    private readonly wants: (table: string) => boolean,
    private readonly logId: string,
    private readonly epoch: number
  ) {
    this.looked = this.written = after
    this.told = after - 1
  }

  /** Takes the next position; answers the text to write for it: mostly nothing or its line. */
  take({ continues, line, table }: Entry): string {
    const seq = ++this.looked
    this.isWithin = continues
    if (this.wants(table)) {
      this.written = this.told = seq
      this.isOpen = continues
      return line
    }
    const ends = this.isOpen && !continues
    return ends || seq - this.told >= mostSkipped ? this.watermark() : ""
  }

  /** A watermark for everything looked at, if that is news and no step is open; otherwise empty. */
  watermark(): string {
    return this.told >= this.looked || this.isWithin ? "" : this.tell()
  }

  /** The log ends here for now: steps are appended whole, so none is open. */
  atEnd(): void {
    this.isWithin = false
  }

  /** A heartbeat: an empty line, which the reader ignores. */
  beat(): string {
    return this.isWithin ? "\n" : this.tell()
  }

  private tell(): string {
    this.told = this.looked
    this.isOpen = false
    return FeedLines.watermarkLine(this.looked, this.logId, this.epoch)
  }

  /** Position that the reader has applied if it reports `applied`: the positions after that had nothing for it. */
  appliedAt(applied: number): number {
    return applied >= this.written && !this.isOpen ? Math.max(applied, this.looked) : applied
  }

  /** Whether positions were skipped that no line has told of. */
  get owesWatermark(): boolean {
    return this.told < this.looked
  }
}
