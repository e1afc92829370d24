/**
 * Cases that random runs have found, cut down, each with the fault it showed; they are replayed before anything random.
 *
 * Why kept: the generator changes and seeds move on, a fault that was there once may come back. A case is committed
 * with its repair. `what` names the fault, not the query.
 */
import type { Json } from "./generateData.ts"
import type { Case } from "./runCase.ts"

export interface Found {
  readonly what: string
  readonly steps: Case
}

const change =
  (table: string, more: object = {}) =>
  (key: string, record: Json): unknown => ({ table, id: `${table}:${key}`, op: "CREATE", record, ...more })
const post = change("post"),
  comment = change("comment"),
  linked = change("post", { types: { friend: "record" } })

export const found: ReadonlyArray<Found> = [
  {
    what: "a row whose sort value comes over a link moves when the linked record changes",
    steps: [
      {
        write: [
          { table: "post", id: "post:1", op: "CREATE", record: { author: "person:1" } },
          { table: "post", id: "post:2", op: "CREATE", record: { author: "person:2" } },
          { table: "person", id: "person:2", op: "CREATE", record: { s: "b" } }
        ]
      },
      { watch: "ordered", query: "SELECT * FROM post ORDER BY author.s, id" },
      { watch: "windowed", query: "SELECT * FROM post ORDER BY author.s, id LIMIT 1" },
      { watch: "run whole", query: "SELECT * FROM (SELECT * FROM post) ORDER BY author.s, id" },
      {
        write: [
          { table: "person", id: "person:1", op: "CREATE", record: { s: "c" } },
          { table: "person", id: "person:2", op: "DELETE", record: {} }
        ]
      }
    ]
  },
  {
    what: "a row sorted by a subquery keeps its place when the subquery's result changes",
    steps: [
      {
        watch: "counted",
        query:
          "SELECT id, (SELECT VALUE count() FROM comment GROUP ALL) AS a1, sub.x FROM post ORDER BY a1, sub.x DESC, id"
      },
      {
        watch: "listed",
        query: "SELECT *, (SELECT id FROM post WHERE sub.x = 0) AS a1 FROM comment ORDER BY a1 DESC, id"
      },
      { write: [post("2", {}), comment("1", {}), post("10", { sub: { x: 0 } }), comment("9", {})] }
    ]
  },
  {
    what: "a record sent twice with one version and different content changes without a word",
    steps: [
      { watch: "all", query: "SELECT * FROM post" },
      { watch: "grouped", query: "SELECT math::sum(n) AS total FROM post GROUP ALL" },
      { write: [post("1", { n: 1, _svc_rv: 4 }), post("1", { n: 2, _svc_rv: 4 }), post("1", { n: 3, _svc_rv: 4 })] }
    ]
  },
  {
    what: "an update is told of a row that holds a child with a new version",
    steps: [
      {
        watch: "nested",
        query:
          "SELECT *, (SELECT id, n, (SELECT id FROM post) AS x FROM person WHERE id = $parent.author) AS a1 FROM post"
      },
      {
        write: [
          post("1", { author: "person:2" }),
          { table: "person", id: "person:2", op: "CREATE", record: {} },
          post("1", { author: "person:2", links: [] })
        ]
      }
    ]
  },
  {
    what: "a record that failed stays listed after it is deleted, where it came in one step with the list it is filed by",
    steps: [
      {
        watch: "listed",
        query:
          "SELECT id FROM comment WHERE n + 1 > false AND (id IN (SELECT VALUE author FROM post WHERE tags CONTAINSNOT person:1) && missing != 1)"
      },
      { write: [post("1", {}), comment("1", {})] },
      { write: [{ table: "comment", id: "comment:1", op: "DELETE", record: {} }] }
    ]
  },
  {
    what: "a row that its index sends away in the step that changes a result it reads is asked again, and stays listed as failing",
    steps: [
      {
        watch: "left",
        query: "SELECT id, (SELECT VALUE n FROM comment) AS a1 FROM post WHERE math::sum(tags) > 0 AND s IN 'a'..'b'"
      },
      { write: [post("10", { s: "a9", tags: [2.5] })] },
      { batch: [post("10", {}), comment("1", {})] },
      { write: [post("10", { tags: [] })] }
    ]
  },
  {
    what: "a child that goes under one row and comes under another in one step is told in an order that loses the new version",
    steps: [
      {
        watch: "nested",
        query:
          "SELECT *, (SELECT id, n, (SELECT id, n FROM person ORDER BY id) AS x FROM person WHERE author = $parent.author ORDER BY id) AS a2 FROM comment"
      },
      { write: [{ table: "person", id: "person:10", op: "UPDATE", record: {} }] },
      {
        batch: [
          comment("1", { author: "person:9" }),
          { table: "person", id: "person:2", op: "UPDATE", record: { author: "person:9" } }
        ]
      },
      {
        batch: [
          comment("2", { author: "person:9" }),
          { table: "person", id: "person:10", op: "CREATE", record: { n: 1 } },
          { table: "comment", id: "comment:1", op: "DELETE", record: {} }
        ]
      }
    ]
  },
  {
    what: "a row that fails behind the window of a subquery fails the row around it",
    steps: [
      { watch: "behind", query: "SELECT id, (SELECT id FROM post WHERE n + 1 > 0 LIMIT 1) AS a1 FROM comment" },
      {
        watch: "by id",
        query: "SELECT id, (SELECT id FROM post WHERE n + 1 > 0 ORDER BY id LIMIT 1) AS a1 FROM comment"
      },
      {
        watch: "sorted",
        query: "SELECT id, (SELECT id, s FROM post WHERE n + 1 > 0 ORDER BY s LIMIT 1) AS a1 FROM comment"
      },
      { write: [comment("1", {}), post("1", { n: 1 }), post("2", {})] },
      { write: [{ table: "post", id: "post:1", op: "DELETE", record: {} }] },
      { write: [post("3", { n: 3 })] },
      { write: [post("2", { n: 2 })] }
    ]
  },
  {
    what: "a change in a subquery's result is not told where another subquery of the row has no result that is kept",
    steps: [
      {
        watch: "both",
        query:
          "SELECT *, (SELECT id, n FROM $parent.friend) AS a1, (SELECT VALUE id FROM person WHERE author = $parent.id) AS a2 FROM person"
      },
      { write: [{ table: "person", id: "person:1", op: "CREATE", record: { friend: -1 } }] },
      { write: [{ table: "person", id: "person:2", op: "CREATE", record: { author: "person:1" } }] },
      { write: [{ table: "person", id: "person:2", op: "UPDATE", record: { author: "person:1", n: 2 } }] },
      { write: [{ table: "person", id: "person:2", op: "DELETE", record: {} }] }
    ]
  },
  {
    what: "a row that a path takes out of the record is not found any more by a list that has changed since its view was filed",
    steps: [
      { watch: "listed", query: "SELECT * FROM post WHERE s IN (SELECT VALUE s FROM post) AND friend.n <= 2" },
      { watch: "elsewhere", query: "SELECT * FROM post WHERE s IN (SELECT VALUE s FROM comment) AND friend.n <= 2" },
      { write: [linked("1", { s: "a", friend: "person:Z" })] },
      { write: [post("2", { s: "a" }), comment("1", { s: "a" })] },
      { write: [linked("3", { s: "b", friend: "person:Z" }), comment("2", { s: "b" })] },
      { write: [{ table: "post", id: "post:1", op: "DELETE", record: {} }] },
      { write: [{ table: "comment", id: "comment:1", op: "DELETE", record: {} }] },
      { write: [{ table: "comment", id: "comment:2", op: "UPDATE", record: { s: ["b"] } }] },
      { write: [{ table: "post", id: "post:3", op: "DELETE", record: {} }] }
    ]
  },
  {
    what: "a child that shows as nothing comes where there was none: the row is told with it (D11)",
    steps: [
      {
        watch: "v0",
        query:
          "SELECT *, (SELECT VALUE n FROM ONLY post WHERE g = $parent.g AND count(<-likes<-person.s) > 1 LIMIT 1) AS a1 FROM post"
      },
      { write: [{ table: "person", id: "person:1", op: "CREATE", record: { s: "10" } }] },
      { write: [{ table: "person", id: "person:2", op: "CREATE", record: { s: "b" } }] },
      {
        write: [
          {
            table: "likes",
            id: "likes:4",
            op: "CREATE",
            record: { in: "person:1", out: "post:10" },
            types: { in: "record", out: "record" }
          }
        ]
      },
      { write: [{ table: "post", id: "post:10", op: "CREATE", record: {} }] },
      {
        write: [
          {
            table: "likes",
            id: "likes:6",
            op: "CREATE",
            record: { in: "person:2", out: "post:10" },
            types: { in: "record", out: "record" }
          }
        ]
      }
    ]
  },
  {
    what: "rows before a window of none are read all the same, and may fail",
    steps: [
      {
        watch: "none",
        query: "SELECT id, (SELECT VALUE id FROM person WHERE math::sum(tags) > 2dec LIMIT 0) AS a1 FROM post"
      },
      {
        watch: "before",
        query: "SELECT id, (SELECT VALUE id FROM person WHERE math::sum(tags) > 2dec LIMIT 0 START 1) AS a1 FROM post"
      },
      {
        watch: "two",
        query: "SELECT id, (SELECT VALUE id FROM person WHERE math::sum(tags) > 2dec LIMIT 0 START 2) AS a1 FROM post"
      },
      { write: [post("1", { s: "a" })] },
      { write: [{ table: "person", id: "person:2", op: "CREATE", record: {} }] },
      { write: [{ table: "person", id: "person:1", op: "CREATE", record: { tags: [7] } }] },
      { write: [{ table: "person", id: "person:2", op: "UPDATE", record: { tags: [1] } }] },
      { write: [{ table: "person", id: "person:3", op: "CREATE", record: {} }] },
      { write: [{ table: "person", id: "person:2", op: "UPDATE", record: { tags: [9] } }] },
      { write: [{ table: "person", id: "person:1", op: "DELETE", record: {} }] }
    ]
  }
]
