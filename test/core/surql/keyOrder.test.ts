/**
 * Records in the order of their keys, ranges of keys and comparisons of ids, against the real database.
 *
 * Why so: the database orders a table otherwise than it compares values: numbers that are equal (`1`, `1f`, `1dec`) are
 * keys of their own, and datetimes stand as text. Random keys of few parts, so that neighbours and equal values are
 * common.
 */
import { expect } from "vitest"
import { type Rng, runs, seeded } from "../../../kit/data/random.ts"
import { fromRecords } from "../../../src/core/surql/evaluate/memory.ts"
import { embedded } from "./embedded.ts"
import { ours, records } from "./engine.ts"

const db = embedded("DEFINE TABLE k")

const parts = [
  ...["0", "1", "1f", "1dec", "2", "2f", "-1", "-1f", "-1dec", "1.5f", "1.5dec", "0.1f", "0.1dec", "0.3f", "0.3dec"],
  ...["9007199254740993", "9007199254740992f", "10", "9dec", "-0.1f", "-0.1dec"],
  ..."00Z 00.5Z 00.25Z 00.000000001Z 00.123456Z 01Z".split(" ").map((end) => `d'2025-05-13T06:00:${end}'`),
  ..."0999 2024 9999".split(" ").map((year) => `d'${year}-01-01T00:00:00Z'`),
  ...["1h", "90m", "1h100ns", "2h", "10h", "'a'", "'ab'", "''", "true", "false", "NULL", "NONE"],
  ...["u'018a6680-bef9-701b-9025-e1754f296a0f'", "p:1", "p:10", "p:2", "p:[1]", "p:[1f]", "p:a"]
]

const part = (rng: Rng, depth: number): string => {
  if (depth > 1 || rng.chance(0.75)) return rng.pick(parts)
  return rng.chance(0.6) ? list(rng, depth + 1) : object(rng, depth + 1)
}
const list = (rng: Rng, depth = 0): string =>
  `[${Array.from({ length: rng.below(4) }, () => part(rng, depth)).join(", ")}]`
const object = (rng: Rng, depth = 0): string =>
  `{ ${["a", "aa", "b"].flatMap((name) => (rng.chance(0.5) ? [`${name}: ${part(rng, depth)}`] : [])).join(", ")} }`

const key = (rng: Rng): string =>
  rng.chance(0.1) ? rng.pick(["1", "a", "10", "-3", "`x y`"]) : rng.chance(0.7) ? list(rng) : object(rng)

seeded(
  "tables, ranges and comparisons of ids give the records that the database gives, in its order",
  "test/core/surql/keyOrder.test.ts",
  async (random) => {
    for (let round = 0; round < runs(6); round++) {
      const keys = [...new Set(Array.from({ length: 60 }, () => key(random)))]
      await db.query(`DELETE k; ${keys.map((id) => `UPSERT k:${id}`).join(";")}`)
      const [kept] = await db.query<[Array<string>]>("RETURN (SELECT VALUE <string> id FROM k)")
      const source = fromRecords(records(kept.map((id) => `${id} {}`).reverse()))
      const [a, b] = [random.pick(keys), random.pick(keys)]
      const queries = [
        "SELECT VALUE id FROM k",
        "SELECT id FROM k ORDER BY id",
        "SELECT id FROM k ORDER BY id DESC",
        ...Array.from({ length: 40 }, () => [random.pick(keys), random.pick(keys)]).flatMap(([from, to]) => [
          `SELECT VALUE id FROM k:${from}..${random.pick(["", "="])}${to}`,
          `SELECT VALUE id FROM k WHERE id ${random.pick([">", ">=", "<", "<="])} k:${from}`,
          `SELECT VALUE id FROM k WHERE id > k:${from} AND id <= k:${to}`
        ]),
        `SELECT VALUE id FROM k:${a}>..`,
        `SELECT VALUE id FROM k:..${b} LIMIT 3`
      ]
      const answers = await db.query<Array<string>>(queries.map((query) => `RETURN <string> [(${query})]`).join(";"))
      const wrong = queries.filter((query, i) => ours(source, query) !== answers[i])
      expect(
        wrong
          .slice(0, 3)
          .map((query) => `${query}\n  ours  ${ours(source, query)}\n  theirs ${answers[queries.indexOf(query)]}`)
          .join("\n")
      ).toBe("")
      expect(kept.length).toBeGreaterThan(40)
    }
  },
  60_000
)
