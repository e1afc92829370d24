/** Group commit: what shares a batch, what gathers, what is refused, and what runs alone. */
import { describe, expect, it } from "vitest"
import { GroupCommit, type GroupCommitOptions } from "../../../src/node/work/groupCommit.ts"

interface Work {
  readonly name: string
  readonly size: number
}

const work = (name: string, size = 1): Work => ({ name, size })

/** A queue whose turns and commits happen when the test says so. */
const make = (options: Partial<GroupCommitOptions<Work>> = {}) => {
  const turns: Array<() => void> = []
  const log: Array<string> = []
  let done: (() => void) | undefined
  const group = new GroupCommit<Work>({
    sizeOf: ({ size }) => size,
    maxPending: 100,
    maxBatch: 10,
    maxGathering: 0,
    next: (run) => void turns.push(run),
    commit: (batch, committed) => {
      log.push(batch.map(({ name }) => name).join("+"))
      done = committed
    },
    ...options
  })
  const turn = (): void => turns.splice(0).forEach((run) => run())
  const commit = (): void => {
    const committed = done!
    done = undefined
    committed()
  }
  return { group, log, turn, commit, turns }
}

describe("GroupCommit", () => {
  it("works that arrive before the turn, or during a commit, share the next batch", () => {
    const { commit, group, log, turn, turns } = make()
    group.submit(work("a"))
    group.submit(work("b"))
    expect(log).toEqual([])
    turn()
    group.submit(work("c"))
    group.submit(work("d"))
    expect(turns).toEqual([])
    commit()
    turn()
    expect(log).toEqual(["a+b", "c+d"])
    expect([group.idle, group.waiting]).toEqual([false, 0])
    commit()
    expect(group.idle).toBe(true)
  })

  it("a batch ends at its largest size, and a work larger than that is a batch of its own", () => {
    const { commit, group, log, turn } = make()
    const sizes = { a: 6, b: 4, c: 1, d: 50, e: 1 }
    for (const [name, size] of Object.entries(sizes)) group.submit(work(name, size))
    for (let n = 0; n < 4; n++) {
      turn()
      commit()
    }
    expect(log).toEqual(["a+b", "c", "d", "e"])
  })

  it("a full queue refuses work, an empty queue takes work of any size", () => {
    const { group, turn } = make()
    expect(group.submit(work("large", 200))).toBe(true)
    expect(group.submit(work("one more"))).toBe(false)
    turn()
    expect(group.waiting).toBe(0)
    expect(group.submit(work("one more"))).toBe(true)
  })

  it("a batch gathers while each turn brings more, at most for the turns allowed, and not when it is full", () => {
    const { commit, group, log, turn } = make({ maxGathering: 3 })
    group.submit(work("a"))
    turn()
    expect(log).toEqual([])
    group.submit(work("b"))
    turn()
    turn()
    expect(log).toEqual(["a+b"])
    commit()
    for (const name of ["c", "d", "e", "f"]) {
      group.submit(work(name))
      turn()
    }
    expect(log.at(-1)).toBe("c+d+e+f")
    commit()
    group.submit(work("full", 10))
    turn()
    expect(log.at(-1)).toBe("full")
  })

  it("an exclusive entry runs after the batch before it and before the batch behind it", () => {
    const { commit, group, log, turn } = make()
    let finish: (() => void) | undefined
    group.submit(work("a"))
    group.alone((done) => {
      log.push("alone")
      finish = done
    })
    group.submit(work("b"))
    turn()
    commit()
    turn()
    turn()
    expect(log).toEqual(["a", "alone"])
    finish!()
    turn()
    expect(log).toEqual(["a", "alone", "b"])
  })

  it("a work that does not join the batch begins the next one, with a rule that begins anew", () => {
    const begin = () => {
      const names = new Set<string>()
      return ({ name }: Work) => !names.has(name) && names.add(name).size > 0
    }
    const { commit, group, log, turn } = make({ begin })
    for (const name of ["a", "b", "a", "b"]) group.submit(work(name))
    turn()
    commit()
    turn()
    expect(log).toEqual(["a+b", "a+b"])
  })

  it("an empty queue commits an empty batch when it is woken, once", () => {
    const { group, log, turn } = make()
    group.wake()
    group.wake()
    turn()
    expect(log).toEqual([""])
  })
})
