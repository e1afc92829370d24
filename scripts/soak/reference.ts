/**
 * What the machine gives for a second of processor time: a fixed piece of work, measured again and again beside the
 * soak.
 *
 * Other programs on a machine take its caches and its clock rate, so that the same change costs more processor time
 * while they run. The piece does what the nodes do (it reads JSON, looks up records in a map larger than the caches,
 * makes short-lived objects), so its cost moves with theirs, and the cost of a change is judged in pieces instead of
 * microseconds.
 */
const records = 200_000
const lookupsPerPiece = 1_000
const pauseMs = 500

const text = JSON.stringify(
  Array.from({ length: 20 }, (_, i) => ({
    id: `item:${i}`,
    title: `a title of a record ${i}`,
    likes: i * 7,
    tags: ["one", "two"]
  }))
)

/** Measures pieces of work from when it is made until it is stopped. */
export class Reference {
  readonly #held = new Map<string, { likes: number }>()
  readonly #timer: NodeJS.Timeout
  #pieces = 0
  #micros = 0
  #at = 1

  constructor() {
    for (let i = 0; i < records; i++) this.#held.set(`item:${i}`, { likes: i })
    this.#timer = setInterval(() => this.#measure(), pauseMs)
  }

  /** Processor time of a piece since the last call, in microseconds; NaN where none was measured. */
  take(): number {
    const mean = this.#micros / this.#pieces
    this.#pieces = 0
    this.#micros = 0
    return mean
  }

  stop(): void {
    clearInterval(this.#timer)
  }

  #measure(): void {
    const before = process.cpuUsage()
    this.#piece()
    const { system, user } = process.cpuUsage(before)
    this.#micros += system + user
    this.#pieces++
  }

  #piece(): void {
    for (let i = 0; i < lookupsPerPiece; i++) {
      // The sequence visits all records before it repeats, in an order that no cache foresees.
      this.#at = (this.#at * 48_271) % 2_147_483_647
      this.#held.get(`item:${this.#at % records}`)!.likes++
    }
    for (let i = 0; i < 20; i++) JSON.parse(text)
  }
}
