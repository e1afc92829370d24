/**
 * Short queries whose work doubles at each step, over a graph in which each record leads to the next one twice: by two
 * edges, and by a list that names it twice. Ways through `n` layers: two to the power of `n`.
 */
import * as RecordIds from "../../../src/core/surql/values/recordId.ts"
import type { Obj } from "../../../src/core/surql/values/value.ts"

/** So many layers, and the last one. */
export const layered = (n: number): ReadonlyArray<Obj> =>
  Array.from({ length: n }, (_, i) => {
    const id = RecordIds.make("p", i),
      next = RecordIds.make("p", i + 1)
    const edge = (k: number): Obj => ({ id: RecordIds.make("k", 2 * i + k), in: id, out: next })
    return [{ id, n: i, l: [next, next], t: `p:[${i},[1,2,3]]` }, edge(0), edge(1)]
  }).flat()

export const doubling: ReadonlyArray<readonly [what: string, query: string]> = [
  ["a list that doubles", "SELECT @.{..}.l AS x FROM p"],
  ["a graph that doubles", "SELECT @.{..}->k->p AS x FROM p"],
  ["all paths of a graph", "SELECT @.{..+path}->k->p AS x FROM p"],
  ["all paths of lists", "SELECT @.{..+path}.l AS x FROM p"],
  ["all paths with their begin", "SELECT @.{..+path+inclusive}.l AS x FROM p"],
  ["a tree of lists", "SELECT @.{..}.{id, l: l.@} AS x FROM p"],
  ["a tree of edges", "SELECT @.{..}.{k: ->k->p.@} AS x FROM p"],
  ["a tree in a tree", "SELECT @.{..}.{a: l.{..}.{b: l.@}} AS x FROM p"],
  ["a recursion behind a recursion", "SELECT @.{..}.l.{..}.l AS x FROM p"],
  ["a filter that doubles", "SELECT * FROM p WHERE @.{..}->k->p"],
  ["an order that doubles", "SELECT *, @.{..}->k->p AS x FROM p ORDER BY x LIMIT 3"],
  ["groups by what doubles", "SELECT count(), id.{..+path}.l AS x FROM p GROUP BY x"],
  ["a group of what doubles", "SELECT array::group(id.{..}->k->p) AS x FROM p GROUP ALL"],
  ["pieces of what doubles", "SELECT @.{..}.l AS x FROM p SPLIT x"],
  ["a subquery that doubles for each row", "SELECT id, (SELECT VALUE @.{..}.l FROM p) AS x FROM p"],
  ["a run of the whole query", "SELECT VALUE @.{..+path}->k->p FROM p, p LIMIT 20"],
  ["a long path that doubles", "SELECT @.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l.l AS x FROM p"],
  ["there and back", "SELECT ->k->p<-k<-p->k->p<-k<-p->k->p<-k<-p->k->p<-k<-p->k->p AS x FROM p"],
  ["queries of steps", "SELECT ->(SELECT ->(SELECT ->(SELECT ->k->p FROM k) FROM k) FROM k) AS x FROM p"],
  [
    "texts that are read as ids",
    "SELECT array::repeat('a:[' + string::repeat('1,', 10000) + ']', 10000).x AS x FROM p"
  ],
  ["texts that are cast to ids", "SELECT <array<record>> array::repeat(string::repeat(t, 1000), 10000) AS x FROM p"]
]
