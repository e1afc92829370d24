/**
 * How the committer gathers (D22): what shares a commit, and how long a batch waits for more.
 *
 * Turns of the event loop are steps of the test here, so that nothing depends on when anything arrives.
 */
import { Effect, Either, Logger, LogLevel } from "effect"
import { describe, expect, it } from "vitest"
import { Engine } from "../../../src/core/ivm/engine.ts"
import * as Change from "../../../src/core/record/change.ts"
import { Database, DatabaseError, type DatabaseShape } from "../../../src/ports/Database.ts"
import { Committer } from "../../../src/ssp/views/committer.ts"
import type { IngestError } from "../../../src/ssp/viewTypes.ts"

/**
 * A committer whose turns are taken by hand; `commits` lists how many records each commit held, `answered` who was
 * answered.
 */
const bench = (kind: DatabaseShape["kind"]) => {
  const turns: Array<() => void> = []
  const commits: Array<number> = []
  const answered: Array<string> = []
  const memory = Effect.runSync(Effect.provide(Database, Database.layerMemory))
  const database: DatabaseShape = {
    ...memory,
    kind,
    commit: (commit) => Effect.tap(memory.commit(commit), () => Effect.sync(() => commits.push(commit.records.length)))
  }
  const engine = new Engine()
  const committer = new Committer(
    {
      engine,
      database,
      turn: { next: (run) => void turns.push(run) },
      run: (effect, done) => done(Effect.runSync(Effect.either(effect)))
    },
    10_000
  )
  const submit = (id: string): void => {
    const changes = Either.getOrThrow(
      Change.decodeChanges({ table: "t", op: "CREATE", id: `t:${id}`, record: { id: `t:${id}` } })
    )
    committer.submit({
      changes,
      putViews: [],
      removeViews: [],
      done: (outcome) => void (Either.isRight(outcome) && answered.push(id))
    })
  }
  /** Creates what is not there when it is asked about. */
  const repair = (...ids: ReadonlyArray<string>): void => {
    const changes = Either.getOrThrow(
      Change.decodeChanges(ids.map((id) => ({ table: "t", op: "CREATE", id: `t:${id}`, record: { repaired: true } })))
    )
    const held: Array<string> = []
    const still = ({ id }: Change.Change): boolean =>
      engine.store.get(id) === undefined && held.push(String(id.key)) > 0
    committer.submit({
      changes,
      putViews: [],
      removeViews: [],
      still,
      done: () => void answered.push(`repaired ${held.join()}`)
    })
  }
  return { commits, answered, submit, repair, turn: () => turns.shift()?.() }
}

/** A committer whose deliveries are answered before `deliver` returns; `refuse` makes its store refuse. */
const following = (maxPending = 10_000) => {
  let refusing = false
  const memory = Effect.runSync(Effect.provide(Database, Database.layerMemory))
  const stored: Array<string> = []
  const database: DatabaseShape = {
    ...memory,
    commit: (commit) =>
      refusing
        ? Effect.fail(new DatabaseError({ reason: "failed", message: "full" }))
        : Effect.tap(memory.commit(commit), () =>
            Effect.sync(() => stored.push(`${commit.records.length} through ${commit.position.seq}`))
          )
  }
  const turns: Array<() => void> = []
  const engine = new Engine()
  const committer = new Committer(
    {
      engine,
      database,
      turn: { next: (run) => void turns.push(run) },
      run: (effect, done) => done(Effect.runSync(Logger.withMinimumLogLevel(Effect.either(effect), LogLevel.None)))
    },
    maxPending
  )
  committer.standAt({ writes: 0, seq: 0, logId: "log", epoch: 1 })
  /** What each step was told with: the positions of its changes, and the one that followers get. */
  const deliver = (...events: ReadonlyArray<readonly [seq: number, continues: boolean, epoch?: number]>): unknown => {
    let said: unknown
    const changes = Either.getOrThrow(
      Change.decodeChanges(
        events.map(([seq, continues, epoch = 1]) => ({
          ...{ table: "t", op: "CREATE", id: `t:${seq}`, record: {}, seq, log_id: "log", epoch },
          ...(continues ? { step_continues: true } : {})
        }))
      )
    )
    committer.submit({
      changes,
      putViews: [],
      removeViews: [],
      done: (outcome, taken) => {
        said = Either.isRight(outcome)
          ? [taken.map(({ position }) => position?.seq), outcome.right.map(({ seq }) => seq)]
          : outcome.left._tag
      }
    })
    while (turns.length > 0) turns.shift()?.()
    return said
  }
  const refuse = (yes: boolean): void => void (refusing = yes)
  return { committer, deliver, refuse, stored, shown: () => [...engine.store.rowsInOrder("t")].length }
}

describe("steps of the scheduler's log", () => {
  it("D44 changes of one step that come in two deliveries are applied at once, and their store has them then", () => {
    const { committer, deliver, shown, stored } = following()
    expect(deliver([1, false], [2, true], [3, true])).toEqual([[1], [1]])
    expect([shown(), committer.position.seq, stored]).toEqual([1, 1, ["1 through 1"]])
    expect(deliver([4, true])).toEqual([[], []])
    expect([shown(), committer.position.seq, stored]).toEqual([1, 1, ["1 through 1"]])
    expect(deliver([5, false], [6, false])).toEqual([
      [2, 3, 4, 5, 6],
      [5, 6]
    ])
    expect([shown(), committer.position.seq, stored]).toEqual([6, 6, ["1 through 1", "5 through 6"]])
  })
  it("D44 a step that was delivered twice is applied once; a gap within it is answered with what is missing", () => {
    const { deliver, shown } = following()
    expect(deliver([1, true], [2, true])).toEqual([[], []])
    expect(deliver([4, false])).toBe("SequenceGap")
    expect(deliver([1, true], [2, true], [3, false])).toEqual([[1, 2, 3], [3]])
    expect(shown()).toBe(3)
  })
  it("D44 where the store refuses the end of a step, nothing of it is shown, and the same delivery brings all of it", () => {
    const { deliver, refuse, shown } = following()
    expect(deliver([1, true])).toEqual([[], []])
    refuse(true)
    expect(deliver([2, false])).toBe("StoreFailed")
    expect(shown()).toBe(0)
    refuse(false)
    expect(deliver([2, false])).toEqual([[1, 2], [2]])
  })
  it("D44 what has come of a step is dropped when everything is replaced, and a step that does not fit is shown in parts", () => {
    const { committer, deliver, shown } = following(3)
    expect(deliver([1, true], [2, true])).toEqual([[], []])
    committer.standAt({ writes: 0, seq: 10, logId: "log", epoch: 2 })
    expect(deliver([11, false, 2])).toEqual([[11], [11]])
    expect(deliver([12, true, 2], [13, true, 2], [14, true, 2])).toEqual([[], []])
    expect(deliver([15, true, 2])).toEqual([[12, 13, 14, 15], [15]])
    expect(deliver([16, false, 2])).toEqual([[16], [16]])
    expect(shown()).toBe(6)
  })
})

describe("group commit", () => {
  it("D5 a gap is answered after the changes it follows are durable; where the store refuses those, the answer is that and no position", () => {
    for (const refuses of [false, true]) {
      const turns: Array<() => void> = []
      const said: Array<string> = []
      const memory = Effect.runSync(Effect.provide(Database, Database.layerMemory))
      const database: DatabaseShape = {
        ...memory,
        commit: (commit) =>
          refuses
            ? Effect.fail(new DatabaseError({ reason: "failed", message: "full" }))
            : Effect.tap(memory.commit(commit), () => Effect.sync(() => said.push("durable")))
      }
      const committer = new Committer(
        {
          engine: new Engine(),
          database,
          turn: { next: (run) => void turns.push(run) },
          run: (effect, done) => done(Effect.runSync(Logger.withMinimumLogLevel(Effect.either(effect), LogLevel.None)))
        },
        10_000
      )
      for (const seq of [14, 16]) {
        const changes = Either.getOrThrow(
          Change.decodeChanges({ table: "t", op: "CREATE", id: `t:${seq}`, record: {}, seq })
        )
        const done = (outcome: Either.Either<unknown, IngestError>): void =>
          void said.push(
            Either.isRight(outcome)
              ? `${seq} applied`
              : outcome.left._tag === "SequenceGap"
                ? `${seq} expected ${outcome.left.expected}`
                : outcome.left._tag
          )
        committer.submit({ changes, putViews: [], removeViews: [], done })
      }
      while (turns.length > 0) turns.shift()?.()
      expect(said).toEqual(refuses ? ["StoreFailed", "StoreFailed"] : ["durable", "14 applied", "16 expected 15"])
    }
  })
  it("D22 a durable store gets one commit for what arrives while turns bring more, and it starts when a turn brings nothing", () => {
    const { answered, commits, submit, turn } = bench("sqlite")
    submit("a")
    turn()
    submit("b")
    turn()
    submit("c")
    turn()
    expect(commits).toEqual([])
    turn()
    expect([commits, answered]).toEqual([[3], ["a", "b", "c"]])
    submit("d")
    turn()
    turn()
    expect(commits).toEqual([3, 1])
  })
  it("D22 a steady trickle does not hold up the first change for more than a few turns", () => {
    const { answered, commits, submit, turn } = bench("sqlite")
    submit("first")
    for (let n = 0; n < 20 && answered.length === 0; n++) {
      turn()
      submit(`later-${n}`)
    }
    expect(answered).toContain("first")
    expect(commits[0]).toBeLessThanOrEqual(10)
  })
  it("memory:// has no flush to share and does not wait", () => {
    const { commits, submit, turn } = bench("memory")
    submit("a")
    turn()
    expect(commits).toEqual([1])
  })
  it("a repair is asked about when all that came before it is applied, and shares no commit with what may change the answer", () => {
    const { answered, commits, repair, submit, turn } = bench("memory")
    submit("a")
    repair("a", "b")
    submit("c")
    repair("c")
    turn()
    turn()
    turn()
    turn()
    // `a` was there by then; `c` came behind the first repair, whose answer it cannot change, and before the second.
    expect([commits, answered]).toEqual([
      [1, 2],
      ["a", "repaired b", "c", "repaired "]
    ])
  })
  it("repairs of different records share a commit", () => {
    const { answered, commits, repair, submit, turn } = bench("memory")
    repair("a")
    repair("b", "c")
    submit("d")
    turn()
    expect([commits, answered]).toEqual([[4], ["repaired a", "repaired b,c", "d"]])
  })
})
