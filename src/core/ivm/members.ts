/**
 * The matching rows of one instance, in no order: each is found from its record's place, and knows where it stands here.
 *
 * Why no Map by id: the place has led to the row already (see place.ts). Nor is there a list until there are two: most
 * views of a large service show one row or none. Cost of each change: O(1).
 */
import type { Member } from "./member.ts"

export class Members {
  private held: Member | Array<Member> | undefined = undefined

  get size(): number {
    return this.held === undefined ? 0 : Array.isArray(this.held) ? this.held.length : 1
  }

  /** Puts the new state of a row in place of its old one; undefined where there is none. */
  exchange(before: Member | undefined, after: Member | undefined): void {
    const { held } = this
    if (after === undefined) this.remove(before!)
    else if (before !== undefined) {
      after.at = before.at
      if (Array.isArray(held)) held[after.at] = after
      else this.held = after
    } else if (held === undefined) this.held = after
    else if (Array.isArray(held)) {
      after.at = held.length
      held.push(after)
    } else {
      after.at = 1
      this.held = [held, after]
    }
  }

  private remove(member: Member): void {
    const { held } = this
    if (!Array.isArray(held)) {
      this.held = undefined
      return
    }
    const last = held.pop()!
    if (last === member) return
    held[member.at] = last
    last.at = member.at
  }

  values(): ReadonlyArray<Member> {
    const { held } = this
    return held === undefined ? none : Array.isArray(held) ? held : [held]
  }
}

const none: ReadonlyArray<Member> = []
