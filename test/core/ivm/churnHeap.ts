/**
 * A process of its own: prints how the heap grows while views of each kind come and go, in bytes for each block of
 * cycles.
 *
 * Why a process: one that runs nothing else, and whose optimizer rests, has a heap that is flat to the byte. The code
 * V8 makes, throws away and makes again lies in the same heap, some hundred KB up and down, and hides a leak or looks
 * like one. Arguments: how many cycles a block has, and how many blocks there are behind the first.
 */
import { heapUsed } from "../../../kit/checks/heap.ts"
import { comingAndGoing } from "./churn.ts"
import { kinds } from "./kinds.ts"

const [cycles, blocks] = process.argv.slice(2).map(Number) as [number, number]

for (const kind of kinds) {
  const cycle = comingAndGoing(kind)
  const heap: Array<number> = []
  for (let block = 0, round = 0; block <= blocks; block++) {
    for (let i = 0; i < cycles; i++) cycle(round++)
    heap.push(heapUsed())
  }
  console.log(JSON.stringify({ kind: kind.kind, growth: heap.slice(1).map((bytes, i) => bytes - heap[i]!) }))
}
