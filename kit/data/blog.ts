/**
 * Five tables that belong together, fifty views over them, and statements that change them in every way SurrealQL has.
 *
 * Why written and not generated: the queries must mean one thing on every evaluator of the database (surely ordered, no
 * index, no failing row), so that a difference is a fault of ours.
 */
import type { Rng } from "./random.ts"

export const tables = ["user", "post", "comment", "item", "likes"]

export const definitions =
  "DEFINE TABLE user; DEFINE TABLE post; DEFINE TABLE comment; DEFINE TABLE item; DEFINE TABLE likes TYPE RELATION"

export interface BlogView {
  readonly key: string
  readonly query: string
  /** The rows are records, so each has an edge. */
  readonly records: boolean
  /** Aliases of subqueries, outermost first, each within the one before. */
  readonly children: ReadonlyArray<string>
}

const times = (
  n: number,
  query: (i: number) => string,
  rest: Partial<BlogView> = {}
): ReadonlyArray<Omit<BlogView, "key">> =>
  Array.from({ length: n }, (_, i) => ({ query: query(i), records: true, children: [], ...rest }))

export const views: ReadonlyArray<BlogView> = [
  ...times(10, (i) => `SELECT * FROM user WHERE age > ${i * 3}`),
  ...times(8, (i) => `SELECT * FROM post WHERE author = user:${i}`),
  ...times(6, (i) => `SELECT * FROM post WHERE score > 5 ORDER BY score DESC, id LIMIT ${i + 1}`),
  ...times(6, (i) => `SELECT * FROM item WHERE tags CONTAINS '${"abcdef"[i]}'`),
  ...times(
    6,
    (i) =>
      `SELECT id, (SELECT id, score FROM post WHERE author = $parent.id ORDER BY score, id LIMIT 3) AS top FROM user WHERE age > ${i * 4}`,
    { children: ["top"] }
  ),
  ...times(
    4,
    (i) =>
      `SELECT id, (SELECT id, (SELECT id FROM comment WHERE post = $parent.id) AS comments FROM post WHERE author = $parent.id) AS posts FROM user WHERE age < ${30 - i * 5}`,
    { children: ["posts", "comments"] }
  ),
  ...times(4, (i) => `SELECT * FROM post WHERE author.age > ${i * 6}`),
  ...times(3, (i) => `SELECT id, ->likes->post AS liked FROM user WHERE age > ${i * 5}`),
  ...times(2, (i) => `SELECT * FROM likes WHERE weight > ${i * 3}`),
  ...times(1, () => "SELECT author, count() AS n FROM post GROUP BY author", { records: false })
].map((view, i) => ({ ...view, key: `v${i}` }))

const user = (random: Rng): string => `user:${random.below(9)}`
const post = (random: Rng): string => `post:${random.below(40)}`
const content = (random: Rng): { readonly [table: string]: string } => ({
  user: `{ age: ${random.below(35)}, name: 'n${random.below(5)}' }`,
  post: `{ author: ${user(random)}, score: ${random.below(20)}, at: d'2024-01-0${1 + random.below(9)}T00:00:00Z' }`,
  comment: `{ post: ${post(random)}, text: 't${random.below(100)}' }`,
  item: `{ tags: [${"abcdef"
    .split("")
    .filter(() => random.chance(0.3))
    .map((tag) => `'${tag}'`)
    .join(", ")}], price: ${random.below(50)}.50dec }`
})

/** One statement, or a few in a transaction; `rolledBack` ones leave nothing. */
export interface Writing {
  readonly text: string
  readonly rolledBack: boolean
}

const single = (random: Rng): string => {
  const table = random.pick(["user", "post", "post", "comment", "comment", "item"])
  const id = table === "user" ? user(random) : table === "post" ? post(random) : `${table}:${random.below(60)}`
  const own = content(random)[table]!
  switch (random.below(9)) {
    case 0:
      return `DELETE ${id}`
    case 1:
      return `CREATE ${table} CONTENT ${own}`
    case 2:
      return `UPDATE ${id} MERGE ${own}`
    case 3:
      return `INSERT INTO ${table} [${[1, 2, 3].map(() => content(random)[table]!).join(", ")}]`
    case 4: {
      const [from, to] = [random.below(9), random.below(12)]
      return `RELATE user:${from}->likes:u${from}p${to}->post:${to} SET weight = ${random.below(9)}`
    }
    case 5:
      return random.pick([
        `UPDATE post SET score += 1 WHERE author = ${user(random)}`,
        `UPDATE item SET price += 1dec WHERE tags CONTAINS 'a'`,
        `DELETE comment WHERE post = ${post(random)}`,
        `DELETE likes WHERE weight = ${random.below(9)}`
      ])
    default:
      return `UPSERT ${id} CONTENT ${own}`
  }
}

export const write = (random: Rng): Writing => {
  if (random.chance(0.8)) return { text: single(random), rolledBack: false }
  const body = Array.from({ length: 2 + random.below(3) }, () => single(random)).join("; ")
  const rolledBack = random.chance(0.4)
  return { text: rolledBack ? `BEGIN; ${body}; THROW 'not this time'; COMMIT` : `BEGIN; ${body}; COMMIT`, rolledBack }
}
