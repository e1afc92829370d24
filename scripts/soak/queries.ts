/**
 * The queries of a soak: each kind the engine keeps in a way of its own, with arguments drawn anew for every view.
 *
 * A view keeps its kind for life and changes its query within it, so that what is registered weighs the same at every
 * minute.
 */
import type { JsonObject } from "../../kit/data/dataset.ts"
import type { Rng } from "../../kit/data/random.ts"
import { groups, jobTable, ranks } from "./world.ts"

export interface Query {
  readonly surql: string
  readonly params: JsonObject
  /** Rows are groups and not records. */
  readonly grouped: boolean
}

type Make = (rng: Rng) => readonly [surql: string, params?: JsonObject]

const g = (rng: Rng): JsonObject => ({ g: rng.below(groups) })

const makers: { readonly [kind: string]: ReadonlyArray<Make> } = {
  plain: [
    (rng) => ["SELECT * FROM person WHERE group = $g", g(rng)],
    (rng) => ["SELECT id, title, rank FROM post WHERE rank < $r", { r: rng.below(ranks / 20) }],
    (rng) => ["SELECT id, weight FROM likes WHERE weight = $w AND in != NONE", { w: rng.below(10) }]
  ],
  window: [
    (rng) => [
      "SELECT id, name, score FROM person WHERE score < $s ORDER BY score DESC LIMIT 20",
      { s: ranks / 2 + rng.below(ranks / 2) }
    ],
    (rng) => ["SELECT id, title, rank FROM post ORDER BY rank, title LIMIT 15 START $n", { n: rng.below(30) }]
  ],
  group: [
    () => [
      "SELECT group, count() AS n, math::sum(score) AS total, math::max(score) AS best, math::mean(score) AS mean FROM person GROUP BY group"
    ],
    (rng) => ["SELECT weight, count() AS n FROM likes WHERE weight < $w GROUP BY weight", { w: 3 + rng.below(7) }],
    (rng) => [
      "SELECT count() AS n, math::min(rank) AS first FROM post WHERE rank > $r GROUP ALL",
      { r: rng.below(ranks) }
    ]
  ],
  split: [(rng) => ["SELECT id, tags, rank FROM post WHERE rank < $r SPLIT tags", { r: 100 + rng.below(400) }]],
  subquery: [
    (rng) => [
      "SELECT id, name, (SELECT id, title, rank FROM post WHERE author = $parent.id ORDER BY rank LIMIT 3) AS posts FROM person WHERE group = $g",
      g(rng)
    ],
    (rng) => [
      "SELECT id, name, (SELECT id, name FROM person WHERE team = $parent.id AND group = $g) AS members FROM team",
      g(rng)
    ]
  ],
  link: [
    (rng) => [
      "SELECT id, name, team.name AS team, friend.name AS friend, friend.team.kind AS kind FROM person WHERE group = $g",
      g(rng)
    ]
  ],
  graph: [
    (rng) => ["SELECT id, ->likes->post.title AS liked FROM person WHERE group = $g", g(rng)],
    (rng) => ["SELECT id, title, <-likes<-person.name AS fans FROM post WHERE rank < $r", { r: 50 + rng.below(200) }]
  ],
  recomputed: [
    (rng) => [
      "SELECT count() AS n, math::sum(score) AS total FROM (SELECT score FROM team WHERE score > $s) GROUP ALL",
      { s: rng.below(100) }
    ],
    (rng) => ["SELECT id, name, score FROM team ORDER BY score DESC, name LIMIT 2 + $n", { n: rng.below(5) }]
  ],
  jobs: [
    () => [`SELECT status, count() AS n FROM ${jobTable} GROUP BY status`],
    (rng) => [`SELECT id, kind, status FROM ${jobTable} WHERE kind = $k`, { k: rng.below(5) }]
  ]
}

export const kinds: ReadonlyArray<string> = Object.keys(makers)

export const query = (kind: string, rng: Rng): Query => {
  const [surql, params = {}] = rng.pick(makers[kind]!)(rng)
  return { surql, params, grouped: /GROUP (?:BY|ALL)/.test(surql) }
}
