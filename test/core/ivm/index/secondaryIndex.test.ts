/**
 * An instance that shows every row of a key stands for those rows in the index. A search of the index must find what
 * it would have found there: while the instance is there, in the middle of a step, and when it is gone.
 */
import { expect, test } from "vitest"
import { parse } from "../../../../src/core/surql/values/recordId.ts"
import { change, Desk } from "../desk.ts"

const comments = "SELECT * FROM comment WHERE thread = $thread"
const newest = "SELECT * FROM comment WHERE thread = $thread ORDER BY n DESC"
const one = { thread: "thread:1" },
  two = { thread: "thread:2" }

const desk = (): Desk => {
  const on = new Desk()
  for (let n = 1; n <= 6; n++) on.put(`comment:${n}`, { thread: n <= 4 ? "thread:1" : "thread:2", n })
  return on
}

/** What the index has under a record id: a row, several in a list, or the instance that keeps them. */
const filed = (on: Desk, table: string, id: string): string => {
  const [index] = on.engine.store.table(table).indexes
  const byKey = Reflect.get(Reflect.get(index!, "filing") as object, "byKey") as {
    readonly get: (id: unknown) => object | undefined
  }
  return byKey.get(parse(id))?.constructor.name ?? "nothing"
}

test("L4 the rows of a key that an instance shows are filed once, and again when it is let go", () => {
  const on = desk()
  // There is no index yet: it comes with the second view of a shape. The first one covers no key, which is one of all
  // the keys of its shape.
  on.watch(newest, two)
  const keeper = on.watch(newest, one)
  expect([filed(on, "comment", "thread:2"), filed(on, "comment", "thread:1")]).toEqual(["Array", "IncrementalView"])
  // One of the same filter has its rows from the keeper, which therefore stays when its own holder lets it go.
  const sharing = on.watch(comments, one)
  on.engine.release(keeper.view)
  expect([filed(on, "comment", "thread:1"), sharing.keys().length]).toEqual(["IncrementalView", 4])
  on.engine.release(sharing.view)
  expect(filed(on, "comment", "thread:1")).toBe("Array")
})

test("L1 a view that comes later finds the rows of a kept key as they are then, and after its keeper has gone", () => {
  const on = desk()
  on.watch(newest, two)
  const keeper = on.watch(newest, one)
  on.put("comment:7", { thread: "thread:1", n: 7 })
    .put("comment:1", { thread: "thread:2", n: 1 }, "UPDATE")
    .put("comment:5", { thread: "thread:1", n: 5 }, "UPDATE")
    .remove("comment:2")
  const during = on.watch(comments, one)
  expect(during.keys().toSorted()).toEqual(["comment:3", "comment:4", "comment:5", "comment:7"])
  on.engine.release(keeper.view)
  on.put("comment:8", { thread: "thread:1", n: 8 }).remove("comment:3")
  expect(on.watch("SELECT * FROM comment WHERE thread = $thread ORDER BY n", one).keys()).toEqual([
    "comment:4",
    "comment:5",
    "comment:7",
    "comment:8"
  ])
  expect(on.watch("SELECT * FROM comment WHERE thread = $thread ORDER BY n", two).keys()).toEqual([
    "comment:1",
    "comment:6"
  ])
})

test("L1 a subquery made in the middle of a step finds the rows of a kept key as the step leaves them", () => {
  const on = desk()
  const threads = on.watch(
    "SELECT *, (SELECT VALUE id FROM comment WHERE thread = $parent.id ORDER BY id) AS comments FROM thread"
  )
  on.watch(newest, two)
  on.watch(newest, one)
  expect(filed(on, "comment", "thread:1")).toBe("IncrementalView")
  on.sendAll([
    change("thread:1", {}),
    change("comment:9", { thread: "thread:1", n: 9 }),
    change("comment:2", undefined),
    change("comment:3", { thread: "thread:2", n: 3 }, "UPDATE")
  ])
  expect(threads.rows()).toEqual([{ id: "thread:1", comments: ["comment:1", "comment:4", "comment:9"] }])
  on.put("thread:2", {})
  expect(threads.rows()[1]).toEqual({ id: "thread:2", comments: ["comment:3", "comment:5", "comment:6"] })
})

test("L1 rows whose key is not fixed are filed as such when a keeper gives back its rows", () => {
  const on = new Desk().put("user:1", { team: "team:1" }).put("user:2", { team: "team:2" })
  const byTeam = "SELECT * FROM task WHERE owner.team = $team"
  on.put("task:1", { owner: { team: "team:1" } })
    .put("task:2", { owner: "user:1" })
    .put("task:3", { owner: { team: "team:2" } })
  on.watch(byTeam, { team: "team:2" })
  const kept = on.watch(byTeam, { team: "team:1" })
  expect([kept.keys().toSorted(), filed(on, "task", "team:1")]).toEqual([["task:1", "task:2"], "IncrementalView"])
  on.engine.release(kept.view)
  expect(filed(on, "task", "team:1")).toBe("RecordSlot")
  on.put("user:1", { team: "team:2" }, "UPDATE")
  expect(on.watch(byTeam, { team: "team:1" }).keys()).toEqual(["task:1"])
  on.put("user:1", { team: "team:1" }, "UPDATE")
  expect(on.watch(`${byTeam} ORDER BY id`, { team: "team:1" }).keys()).toEqual(["task:1", "task:2"])
})

test("D16 a view that outgrows what it may keep gives its rows back while they are few, and none twice", () => {
  const on = new Desk()
  on.watch(comments, two)
  const keeper = on.watch(comments, one)
  for (let n = 1; n <= 2_048; n++) on.put(`comment:${n}`, { thread: "thread:1", n })
  expect([filed(on, "comment", "thread:1"), keeper.keys().length]).toEqual(["IncrementalView", 2_048])
  // Of one step: one leaves the key, one goes, one comes and goes, two come.
  on.sendAll([
    change("comment:1", { thread: "thread:2", n: 1 }, "UPDATE"),
    change("comment:3000", { thread: "thread:1", n: 1 }),
    change("comment:2", undefined),
    change("comment:3001", { thread: "thread:1", n: 2 }),
    change("comment:3002", { thread: "thread:1", n: 2 }),
    change("comment:3001", undefined)
  ])
  expect(filed(on, "comment", "thread:1")).toBe("Set")
  const later = on.watch("SELECT * FROM comment WHERE thread = $thread ORDER BY n, id", one)
  expect(later.keys().toSorted()).toEqual(keeper.keys().toSorted())
  on.engine.release(keeper.view)
  on.put("comment:4000", { thread: "thread:1", n: 1 })
    .remove("comment:3000")
    .put("comment:2", { thread: "thread:1", n: 2 })
  const last = on.watch("SELECT * FROM comment WHERE thread = $thread ORDER BY n DESC, id", one).keys()
  expect(last.toSorted()).toEqual(later.keys().toSorted())
  expect([last.length, new Set(last).size]).toEqual([2_049, 2_049])
})

test("D16 a row that gets its key only now is filed once where a view outgrows what it may keep", () => {
  const on = new Desk().put("user:1", { team: "team:1" }),
    byTeam = "SELECT * FROM task WHERE owner.team = $team"
  on.put("task:1", { owner: "user:1" }).put("task:2", { owner: { team: "team:1" } })
  on.watch(byTeam, { team: "team:2" })
  const keeper = on.watch(byTeam, { team: "team:1" })
  for (let n = 3; n <= 2_048; n++) on.put(`task:${n}`, { owner: { team: "team:1" } })
  expect([filed(on, "task", "team:1"), keeper.keys().length]).toEqual(["IncrementalView", 2_048])
  on.put("task:1", { owner: { team: "team:1" } }, "UPDATE")
  expect(filed(on, "task", "team:1")).toBe("Set")
  on.engine.release(keeper.view)
  expect(on.watch(`${byTeam} ORDER BY id`, { team: "team:1" }).keys()).toHaveLength(2_048)
})
