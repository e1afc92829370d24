/**
 * A small world and a view of every kind over it, for tests of what views leave behind.
 *
 * Why one list: a new kind of view is added here, and the test fails when it leaves something behind.
 */

import { Engine } from "../../../src/core/ivm/engine.ts"
import type { EngineOptions } from "../../../src/core/ivm/options.ts"
import { Desk } from "./desk.ts"
import type { Json } from "./generateData.ts"

export interface Kind {
  readonly kind: string
  readonly query: string
  readonly params?: Json
}

export const kinds: ReadonlyArray<Kind> = [
  { kind: "plain", query: "SELECT * FROM post" },
  { kind: "filtered", query: "SELECT * FROM post WHERE n > 3 AND n % 2 = 0" },
  { kind: "by argument", query: "SELECT * FROM post WHERE author = $a", params: { a: "user:1" } },
  { kind: "by several arguments", query: "SELECT * FROM post WHERE author IN $a", params: { a: ["user:1", "user:2"] } },
  { kind: "by range", query: "SELECT * FROM post WHERE n >= $from AND n < $to", params: { from: 3, to: 40 } },
  { kind: "window", query: "SELECT * FROM post ORDER BY n DESC LIMIT 5" },
  {
    kind: "window with start",
    query: "SELECT * FROM post WHERE author = $a ORDER BY n START 2 LIMIT 5",
    params: { a: "user:1" }
  },
  { kind: "only", query: "SELECT * FROM ONLY post LIMIT 1" },
  { kind: "records and ranges", query: "SELECT * FROM user:1, post:3..20" },
  {
    kind: "group",
    query: "SELECT author, count() AS c, math::sum(n) AS s, math::max(n) AS m FROM post GROUP BY author"
  },
  { kind: "group all", query: "SELECT count() AS c FROM post GROUP ALL" },
  { kind: "folded group", query: "SELECT author, array::group(tags) AS all FROM post GROUP BY author" },
  { kind: "split", query: "SELECT id, tags FROM post SPLIT tags" },
  { kind: "split window", query: "SELECT id, tags FROM post SPLIT tags ORDER BY tags LIMIT 7" },
  {
    kind: "subquery",
    query: "SELECT *, (SELECT * FROM post WHERE author = $parent.id ORDER BY n LIMIT 3) AS posts FROM user"
  },
  {
    kind: "nested subqueries",
    query:
      "SELECT *, (SELECT *, (SELECT * FROM likes WHERE out = $parent.id) AS likes FROM post WHERE author = $parent.id) AS posts FROM user"
  },
  {
    kind: "subquery that fails",
    query: "SELECT *, (SELECT VALUE n + tags FROM post WHERE author = $parent.id) AS posts FROM user"
  },
  { kind: "subquery behind IN", query: "SELECT * FROM post WHERE author IN (SELECT VALUE id FROM user WHERE age > 2)" },
  {
    kind: "subquery in a filter",
    query: "SELECT * FROM user WHERE count((SELECT * FROM post WHERE author = $parent.id)) > 2"
  },
  { kind: "link", query: "SELECT *, author.name AS name FROM post WHERE author.age > 1" },
  { kind: "window by a link", query: "SELECT *, author.age AS age FROM post ORDER BY age LIMIT 4" },
  { kind: "group by a link", query: "SELECT author.age AS age, count() AS c FROM post GROUP BY age" },
  { kind: "fetch", query: "SELECT * FROM post FETCH author" },
  { kind: "graph", query: "SELECT *, ->likes->post AS liked, count(<-likes) AS c FROM user" },
  { kind: "recomputed", query: "SELECT * FROM post, post:1" }
]

export const users = 6
export const posts = 90

export const postOf = (i: number): Json => ({
  n: i % 50,
  author: `user:${i % users}`,
  tags: [`t${i % 3}`, `t${i % 5}`]
})

/** The world those views look at. */
export const world = (options: EngineOptions = {}): Desk => {
  const desk = new Desk(new Engine(options))
  for (let i = 0; i < users; i++) desk.put(`user:${i}`, { name: `u${i}`, age: i })
  for (let i = 0; i < posts; i++) desk.put(`post:${i}`, postOf(i))
  for (let i = 0; i < 40; i++)
    desk.send({
      table: "likes",
      id: `likes:${i}`,
      op: "CREATE",
      record: { in: `user:${i % users}`, out: `post:${(i * 7) % posts}` }
    })
  return desk
}
