/**
 * Views that come and go: what they see meanwhile, and one cycle of one kind of them.
 *
 * Apart from the tests because every run of views that come and go is the same.
 */
import { Either } from "effect"
import { parseSelect } from "../../../src/core/surql/syntax/parse.ts"
import { fromJson } from "../../../src/core/surql/values/json.ts"
import type { Value } from "../../../src/core/surql/values/value.ts"
import type { Desk } from "./desk.ts"
import { type kinds, postOf, posts, world } from "./kinds.ts"

/** Changes that every kind of view sees, and that lead back to where they began. */
export const stir = (desk: Desk, round: number): void => {
  const id = `post:${(round * 13) % posts}`
  desk.put(id, { ...postOf(round), n: 1000 + round, author: `user:${round % 5}` })
  desk.remove(id)
  desk.put("user:1", { name: "other", age: round })
  desk.send({ table: "likes", id: "likes:3", op: "DELETE", record: {} })
  desk.put(id, postOf((round * 13) % posts))
  desk.put("user:1", { name: "u1", age: 1 })
  desk.send({ table: "likes", id: "likes:3", op: "CREATE", record: { in: "user:3", out: "post:21" } })
}

/**
 * Acquires and releases a view of one kind, in a world of its own: a query parsed once and one parsed afresh by turns,
 * with changes between the two now and then.
 */
export const comingAndGoing = ({ params, query }: (typeof kinds)[number]): ((round: number) => void) => {
  const desk = world()
  const known = Either.getOrThrow(parseSelect(query))
  const given = fromJson(params ?? {}) as { readonly [name: string]: Value }
  return (round) => {
    const select = round % 2 === 0 ? known : Either.getOrThrow(parseSelect(query))
    const view = Either.getOrThrowWith(desk.engine.acquire(select, given), ({ reason }) => new Error(reason))
    if (round % 5 === 0) stir(desk, round)
    desk.engine.release(view)
  }
}
