/**
 * Where a log stood with messages of its stream, as far as that is known: between which messages a position is found.
 *
 * Bounded: of too many every second one is forgotten, and what lies between is found by reading.
 */

const most = 8192

/** The first index in an ascending list whose number is greater than `than`. */
const above = (numbers: ReadonlyArray<number>, than: number): number => {
  let [low, high] = [0, numbers.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (numbers[middle]! > than) high = middle
    else low = middle + 1
  }
  return low
}

export class Marks {
  private messages: Array<number> = []
  /** Of each message, the position of the log's last record with it. */
  private positions: Array<number> = []

  add(message: number, position: number): void {
    const at = above(this.messages, message)
    if (this.messages[at - 1] === message) return
    if (at === this.messages.length) {
      this.messages.push(message)
      this.positions.push(position)
    } else {
      this.messages.splice(at, 0, message)
      this.positions.splice(at, 0, position)
    }
    if (this.messages.length <= most) return
    this.messages = this.messages.filter((_, i) => i % 2 === 1)
    this.positions = this.positions.filter((_, i) => i % 2 === 1)
  }

  /** The last message at or before the position, and the first one behind it; 0 and `end` where none is known. */
  around(position: number, end: number): [from: number, to: number] {
    const at = above(this.positions, position)
    return [this.messages[at - 1] ?? 0, this.messages[at] ?? end]
  }
}
