/**
 * Queries and views that are made to stop a process.
 *
 * Why a table: each row is tried on the evaluator in this process (`queries.test.ts`), in a process with a small heap
 * (`heap.test.ts`), on the built processes (`built.test.ts`), and over and over with others in between
 * (`storm.campaign.test.ts`).
 */

const repeated = (n: number, text: string, by = ","): string => Array.from({ length: n }, () => text).join(by)

/** Reasons that a query may be refused for. */
export const declared =
  /SVC_QUERY_(ROW_STEPS|STEPS|BYTES|ROWS)|must not exceed|more than \d+ (parts|terms|operators)|nests deeper|recurses too deep|too long|longer than|Could not cast|Cannot perform/

export const queries: ReadonlyArray<readonly [what: string, query: string]> = [
  ["windows of half an array", "RETURN array::windows(array::range(0,100000),50000)"],
  ["windows in the projection of a view", "SELECT array::windows(array::range(0, 100000), 50000) AS w FROM t"],
  ["one long column", "RETURN array::transpose(array::range(0, 3000).map(|$v| array::range(0, 3000)))"],
  [
    "transposing one long column among many short",
    "RETURN array::transpose(array::append(array::range(0, 100000), array::range(0, 100000)))"
  ],
  ["flattening one array a thousand times", "RETURN array::flatten(array::repeat(array::range(0, 100000), 10000))"],
  ["each with each", "RETURN array::combine(array::range(0, 1000), array::range(0, 1000))"],
  ["distinct of what is shared", "RETURN array::distinct(array::repeat(array::range(0, 100000), 100000))"],
  ["a list of what a list lacks", "RETURN array::add(array::range(0, 100000), array::range(100000, 200000))"],
  ["complement of two large arrays", "RETURN array::complement(array::range(0, 400000), array::range(400000, 800000))"],
  ["difference of two large arrays", "RETURN array::difference(array::range(0, 400000), array::range(400000, 800000))"],
  [
    "intersection of two large arrays",
    "RETURN array::intersect(array::range(0, 400000), array::range(400000, 800000))"
  ],
  ["sorting what is shared", "RETURN array::sort(array::repeat(array::range(0, 1000), 100000))"],
  ["all of a large array in another", "RETURN array::range(0, 100000) CONTAINSALL array::range(0, 100000)"],
  ["none of a large array in another", "RETURN array::range(0, 100000) CONTAINSNONE array::range(100000, 200000)"],
  [
    "comparing what is shared",
    "RETURN array::repeat(array::range(0, 1000), 100000) = array::repeat(array::range(0, 1000), 100000)"
  ],
  [
    "comparing large arrays many times",
    "{ RETURN 1 }; RETURN array::range(0, 100000).map(|$i| array::range(0, 1000) = array::range(0, 1000))"
  ],
  ["text of what is shared", "RETURN <string> array::repeat(array::range(0, 1000), 100000)"],
  ["a message about what is shared", "RETURN 1 + array::repeat(array::range(0, 1000), 100000)"],
  ["base64 with equals signs inside", "RETURN encoding::base64::decode(string::repeat('=', 1000000) + 'x')"],
  [
    "a regular expression of many instructions",
    "RETURN string::matches(string::repeat('a', 100000), '((a{100}){100}){100}')"
  ],
  [
    "a regular expression over a long text",
    "RETURN string::matches(string::repeat('a', 1000000), '(a|b|c|d|e|f|g)*z')"
  ],
  [
    "the distance of long texts",
    "RETURN string::distance::osa(string::repeat('a', 100000), string::repeat('b', 100000))"
  ],
  ["a text in a text", "RETURN string::contains(string::repeat('a', 1000000), 'b' + string::repeat('a', 500000))"],
  ["ORDER BY with very many terms", `SELECT * FROM t ORDER BY ${repeated(30_000, "n")}`],
  ["a type that nests", `RETURN <${"array<".repeat(5000)}int${">".repeat(5000)}> 1`],
  ["SPLIT by SPLIT", "SELECT tags AS a, tags AS b, tags AS c FROM t SPLIT a, b, c"],
  ["a closure with a long body", `RETURN array::range(0, 500000).map(|$v| [${repeated(2000, "$v")}])`],
  [
    "a list of one list",
    `RETURN { LET $a = array::range(0, 100000); RETURN array::len(array::flatten([${repeated(5000, "$a")}])) }`
  ],
  ["a text that doubles", "RETURN array::fold(array::range(0, 60), 'ab', |$a, $b| $a + $a)"],
  ["a path of a path of a path", `RETURN type::field('${repeated(15_000, "a", ".")}')`],
  [
    "a view whose filter is a constant of what is shared",
    "SELECT * FROM t WHERE array::repeat(array::repeat(array::range(0, 5000), 5000), 100) ORDER BY n LIMIT 0"
  ],
  ["distinct of ints beyond 53 bits", "RETURN array::distinct(array::range(9007199254740993, 9007199254840993))"],
  ["a closure over a large set", "RETURN set::map(<set> array::range(0, 200000), |$v| $v)"],
  ["a large array as decimals", "RETURN <array<decimal>> array::range(0, 300000)"],
  ["a large array as text", "RETURN <string> array::range(0, 300000).map(|$v| '\\n')"],
  ["long texts as one text", "RETURN <string> array::repeat(string::repeat('\\n', 1000), 10000)"],
  [
    "sorting texts by their letters",
    "RETURN array::sort_natural(array::range(0, 60000).map(|$v| 'é' + <string> ($v * 7919 % 100003)))"
  ],
  [
    "truth of many datetimes",
    "RETURN array::boolean_and(array::repeat(time::epoch, 900000), array::repeat(time::epoch, 900000))"
  ],
  [
    "pairs of what is shared, written out number by number",
    "RETURN array::combine((SELECT VALUE array::range(0, 100000) FROM t LIMIT 5), array::repeat(array::range(0, 1), 100))"
  ],
  ["a decimal with more places than there are", "RETURN math::fixed(1.5dec, 4294967295)"]
]

/** Queries that make, or answer with, nearly as much as one may where `SVC_QUERY_BYTES` is 16 MiB. */
export const largest: ReadonlyArray<string> = [
  "RETURN array::repeat(string::repeat('x', 1000000), 15)",
  "SELECT VALUE array::range(0, 900000) FROM [1, 2]",
  "SELECT VALUE array::range(1000000000000, 1000000500000) FROM [1, 2]"
]

/** A view whose rows each keep some 2 MiB of their own, where SVC_VIEW_BYTES_TOTAL is a third of a small heap. */
export const keeping = "SELECT id, array::range(n, n + 300000) AS w FROM t ORDER BY w LIMIT 1000"

/** A view whose rows show the same short list very often: over 100 rows some 200 MiB when they are written out. */
export const shortLists = "SELECT array::repeat([1], 40000) AS w FROM t"

/** A query as the one of a view: what is answered becomes a column. */
export const viewOf = (query: string): string =>
  /^RETURN (?!\{ LET)/.test(query) ? `SELECT ${query.slice(7)} AS w FROM t` : query
