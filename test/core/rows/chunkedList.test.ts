/** The list in chunks beside an array that is told the same. */
import { expect } from "vitest"
import { runs, seeded } from "../../../kit/data/random.ts"
import { ChunkedList, type ListItem } from "../../../src/core/rows/chunkedList.ts"

interface Item extends ListItem<Item> {
  readonly n: number
}

const itemOf = (n: number): Item => ({ n, chunk: undefined })

seeded(
  "a list in chunks is the array that is told the same, and knows where each item is",
  "test/core/rows/chunkedList.test.ts",
  (random) => {
    for (let run = 0; run < runs(20); run++) {
      const array = Array.from({ length: random.below(701) }, (_, n) => itemOf(2 * n))
      const list = new ChunkedList([...array])
      for (let step = 0; step < 400; step++) {
        if (array.length > 0 && random.chance(run % 2 === 0 ? 0.7 : 0.4)) {
          const at = random.below(array.length)
          expect(list.positionOf(array[at]!)).toBe(at)
          expect(list.removeAt(at)).toBe(array[at])
          array.splice(at, 1)
        } else {
          const item = itemOf(random.below(1_501))
          const at = list.firstWhere(({ n }) => n >= item.n)
          expect(at).toBe(array.filter(({ n }) => n < item.n).length)
          list.insert(at, item)
          array.splice(at, 0, item)
        }
      }
      expect([...list]).toEqual(array)
      expect(list.size).toBe(array.length)
    }
  }
)
