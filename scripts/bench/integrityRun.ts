/**
 * Measures the hashes of a table's records (D41), in this process, round by round beside the least that any hash of them
 * costs: their canonical texts, each through the SHA-256 of Node.
 *
 * Started by `integrity.ts`, which points the imports of `src` at `dist`.
 */
import { createHash } from "node:crypto"
import { contentOf } from "../../src/core/integrity/merkle.ts"
import { StoreTrees } from "../../src/core/integrity/storeTrees.ts"
import { Store } from "../../src/core/ivm/store/store.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"

const count = Number(process.argv.at(-1))
const changed = 1_000
const rounds = 7
const warmUps = 2

const id = (n: number) => Ids.make("post", n)
const store = new Store()
for (let n = 0; n < count; n++) {
  const doc = {
    id: id(n),
    author: Ids.make("user", n % 1_000),
    title: `Post number ${n}`,
    likes: n,
    tags: ["a", "b"],
    body: "Lorem ipsum dolor sit amet, consectetur adipiscing elit. ".repeat(4)
  }
  const change = { op: "CREATE", id: doc.id, doc, version: 1, position: undefined, jobAssignee: undefined } as const
  for (const write of store.plan([change])) if (write !== undefined) store.apply(write)
}

/** CPU microseconds for each of so many records. */
const perRecord = (records: number, work: () => void): number => {
  const before = process.cpuUsage()
  work()
  const { system, user } = process.cpuUsage(before)
  return (user + system) / records
}

const plain = (): void => {
  for (const row of store.rows("post"))
    createHash("sha256")
      .update(`${row.id.text}\u0000${contentOf(row.doc)}`)
      .digest("hex")
}

const figures = {
  plain: [] as Array<number>,
  whole: [] as Array<number>,
  changed: [] as Array<number>
}
for (let round = -warmUps; round < rounds; round++) {
  const trees = new StoreTrees(store)
  const least = perRecord(count, plain)
  const whole = perRecord(count, () => trees.settle("post"))
  for (let n = 0; n < changed; n++) trees.moved(id((n * 7919) % count))
  const some = perRecord(changed, () => trees.settle("post"))
  if (round < 0) continue
  figures.plain.push(least)
  figures.whole.push(whole)
  figures.changed.push(some)
}
console.log(JSON.stringify(figures))
