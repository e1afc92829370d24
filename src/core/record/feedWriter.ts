/**
 * What a scheduler writes into a feed of some tables (D61): events of these, and watermarks where others were passed
 * over.
 *
 * A reader holds the changes of a step until its end has come (D44). Where that end is of another table a watermark
 * stands for it, and no watermark stands within a step, so that a reader needs to know nothing of the other tables.
 */
import * as FeedLines from "./feedLines.ts"

/** A position of the log, as far as a feed looks at it. */
export interface Entry {
  readonly table: string
  /** The next position belongs to the same step. */
  readonly continues: boolean
  /** The whole line, its line break included. */
  readonly line: string
}

/** Positions passed over after which a watermark is written at once. */
export const mostSkipped = 500

export class FeedWriter {
  /** Everything through here has been looked at. */
  looked: number
  /** The position of the last event that was written. */
  private written: number
  /** The position through which everything has come, as the lines written so far tell the reader. */
  private told: number
  /** A step goes on behind `looked`, for all that is known; an event of it was written. */
  private isWithin = true
  private isOpen = true

  /** `after` may lie within a step, of which the reader has a part. */
  constructor(
    after: number,
    private readonly wants: (table: string) => boolean,
    private readonly logId: string,
    private readonly epoch: number
  ) {
    this.looked = this.written = after
    this.told = after - 1
  }

  /** Looks at the position behind the last; answers what is to be written of it, as a rule nothing or its line. */
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

  /** That everything looked at has come, where that is news and no step goes on. */
  watermark(): string {
    return this.told >= this.looked || this.isWithin ? "" : this.tell()
  }

  /** The log ends here, for now: steps are appended whole. */
  atEnd(): void {
    this.isWithin = false
  }

  /** Says that the feed is there; an empty line is nothing to its reader. */
  beat(): string {
    return this.isWithin ? "\n" : this.tell()
  }

  private tell(): string {
    this.told = this.looked
    this.isOpen = false
    return FeedLines.watermarkLine(this.looked, this.logId, this.epoch)
  }

  /** Position that the reader has applied, given that it reports `applied`: later positions held nothing for it. */
  appliedAt(applied: number): number {
    return applied >= this.written && !this.isOpen ? Math.max(applied, this.looked) : applied
  }

  /** Whether something was passed over that no line tells of yet. */
  get owesWatermark(): boolean {
    return this.told < this.looked
  }
}
