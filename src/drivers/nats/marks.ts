/**
 * Known pairs of message number and log position, which bound the search for a position's message.
 *
 * If there are too many pairs, every second one is dropped.
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
  /** Position of the log's last record as of each message. */
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

  /** Last known message at or before the position, and first known one behind it; 0 and `end` if there is none. */
  around(position: number, end: number): [from: number, to: number] {
    const at = above(this.positions, position)
    return [this.messages[at - 1] ?? 0, this.messages[at] ?? end]
  }
}
