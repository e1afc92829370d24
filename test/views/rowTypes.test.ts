/**
 * Types of rows written from queries and a schema: the compiler takes the rows that the evaluator answers and right
 * uses, and refuses wrong ones.
 */
import { mkdirSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { Schema } from "effect"
import ts from "typescript"
import { describe, expect, it } from "vitest"
import { root } from "../../kit/rules/source.ts"
import { fromRecords } from "../../src/core/surql/evaluate/memory.ts"
import { makeBudget } from "../../src/core/surql/evaluate/scope.ts"
import { selectRows } from "../../src/core/surql/evaluate/select/select.ts"
import { parseSelect } from "../../src/core/surql/syntax/parse.ts"
import { fromJson, toJson } from "../../src/core/surql/values/json.ts"
import * as Ids from "../../src/core/surql/values/recordId.ts"
import type { Obj } from "../../src/core/surql/values/value.ts"
import { declaredIn } from "../../src/views/declaredFields.ts"
import { rowTypeOf, written } from "../../src/views/rowTypes.ts"
import { defineViews, rowTypes } from "../../src/views.ts"

const schema = `
-- DEFINE FIELD nothing ON post TYPE int;
DEFINE TABLE post SCHEMAFULL; /* DEFINE FIELD none ON post TYPE int */
DEFINE FIELD title ON TABLE post TYPE string ASSERT string::len($value) > 0;
DEFINE FIELD IF NOT EXISTS votes ON post TYPE int DEFAULT 0;
DEFINE FIELD OVERWRITE at ON post TYPE datetime;
DEFINE FIELD author ON post TYPE record<user>;
DEFINE FIELD editor ON post TYPE option<record<user>>;
DEFINE FIELD status ON post TYPE 'draft' | 'public; kept' DEFAULT 'draft';
DEFINE FIELD tags ON post TYPE array<string, 10>;
DEFINE FIELD meta ON post FLEXIBLE TYPE object;
DEFINE FIELD meta.words ON post TYPE int;
DEFINE FIELD meta.lang ON post TYPE option<string>;
DEFINE FIELD parts ON post TYPE array<object>;
DEFINE FIELD parts.*.text ON post TYPE string;
DEFINE FIELD parts[*].size ON post TYPE number;
DEFINE FIELD price ON post TYPE decimal | none;
DEFINE FIELD free ON post;
define field name on user type string;
DEFINE FIELD post ON comment TYPE record<post>;
DEFINE FIELD text ON comment TYPE string;
DEFINE TABLE likes TYPE RELATION IN user OUT post | comment ENFORCED;
DEFINE FIELD weight ON likes TYPE float;
`

const at = "2026-01-01T00:00:00Z"
const post = {
  id: "post:1",
  title: "one",
  votes: 3,
  at,
  author: "user:1",
  editor: "user:1",
  status: "draft",
  tags: ["a"],
  meta: { words: 3 },
  parts: [{ text: "t", size: 1 }],
  free: { any: ["thing"] }
}
const records = [
  post,
  { id: "user:1", name: "Ann" },
  { id: "comment:1", post: "post:1", text: "hi" },
  { id: "likes:1", in: "user:1", out: "post:1", weight: 0.5 }
].map((record) => ({ ...(fromJson(record) as Obj), id: Ids.parseLenient(record.id) }))

const queries: { readonly [name: string]: string } = {
  plain: "SELECT id, title, votes, at, author, editor, status, tags, price, free, parts FROM post ORDER BY at",
  all: "SELECT * FROM post",
  fewer: "SELECT * OMIT free, meta FROM post",
  nested: "SELECT meta.words, meta.lang, votes AS figures.votes FROM post",
  linked: "SELECT author.name, editor.name AS editor, author.id AS id FROM post",
  comments:
    "SELECT id, (SELECT id, text, post = $parent.id AS same, $parent.title AS title FROM comment WHERE post = $parent.id) AS comments FROM post",
  texts: "SELECT VALUE text FROM comment",
  maybe: "SELECT VALUE editor FROM post",
  totals: "SELECT count() AS posts, math::sum(votes) AS votes FROM post GROUP ALL",
  groups: "SELECT author, count(), title FROM post GROUP BY author",
  made: "SELECT votes > 2 AS many, !free AS empty, 'x' AS constant, { votes: votes, of: title } AS both, [title, at] AS list, <string> votes AS text FROM post",
  odd: "SELECT votes + 1 AS more, tags[0] AS first, string::uppercase(title) AS loud, ->likes->post AS liked FROM post",
  followed: "SELECT author, title FROM post FETCH author",
  taken: "SELECT tags, title FROM post SPLIT tags",
  first: "SELECT title, (SELECT text FROM ONLY comment LIMIT 1) AS comment FROM post",
  edge: "SELECT in, out, weight FROM likes",
  unnamed: "SELECT id, whatever FROM nowhere",
  several: "SELECT id, title FROM post, user"
}

const rowsOf = (surql: string): ReadonlyArray<unknown> => {
  const parsed = parseSelect(surql)
  if (parsed._tag === "Left") throw new Error(parsed.left.message)
  const answer = selectRows(parsed.right, {
    source: fromRecords(records),
    params: {},
    budget: makeBudget(1e6, "none"),
    onFailure: "leaveOut"
  })
  if (answer._tag === "Left") throw new Error(JSON.stringify(answer.left))
  expect(answer.right.rows.length).toBeGreaterThan(surql.includes("nowhere") ? -1 : 0)
  return answer.right.rows.map((row) => toJson(row.value))
}

/** What the strict compiler says of a program that imports `Rows`. */
const faultsOf = (rows: string, program: string): ReadonlyArray<string> => {
  const folder = join(root, "test-output", `rowTypes-${process.pid}`)
  mkdirSync(folder, { recursive: true })
  try {
    writeFileSync(join(folder, "rows.ts"), rows)
    writeFileSync(join(folder, "use.ts"), `import type { Rows } from "./rows.ts"\n${program}`)
    const compiled = ts.createProgram([join(folder, "use.ts")], {
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      target: ts.ScriptTarget.ES2022,
      module: ts.ModuleKind.NodeNext,
      types: []
    })
    return ts
      .getPreEmitDiagnostics(compiled)
      .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, " "))
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

describe("types of rows", () => {
  it("are those of the rows: the compiler takes what the evaluator answers, with no column too many", () => {
    const rows = written(Object.entries(queries), schema)
    const uses = Object.entries(queries).map(
      ([name, surql]) => `export const ${name}: ReadonlyArray<Rows["${name}"]> = ${JSON.stringify(rowsOf(surql))}`
    )
    expect(faultsOf(rows, uses.join("\n"))).toEqual([])
  })
  it("say what the schema and the query say, and unknown where they say nothing", () => {
    const tables = declaredIn(schema)
    const typeOf = (name: string): unknown => {
      const type = rowTypeOf(queries[name]!, tables)
      return type._tag === "Right" ? type.right : type.left
    }
    expect(typeOf("plain")).toBe(
      "{ readonly id: `post:${string}`; readonly title: string; readonly votes: number; readonly at: string; " +
        "readonly author: `user:${string}`; readonly editor?: `user:${string}`; " +
        'readonly status: "draft" | "public; kept"; readonly tags: ReadonlyArray<string>; readonly price?: string; ' +
        "readonly free?: unknown; readonly parts: ReadonlyArray<{ readonly text: string; readonly size?: unknown }> }"
    )
    expect(typeOf("nested")).toBe(
      "{ readonly meta: { readonly words: number; readonly lang?: string }; readonly figures: { readonly votes: number } }"
    )
    expect(typeOf("linked")).toBe(
      "{ readonly author: { readonly name?: string }; readonly editor?: string; readonly id?: `user:${string}` }"
    )
    expect(typeOf("comments")).toBe(
      "{ readonly id: `post:${string}`; readonly comments: ReadonlyArray<{ readonly id: `comment:${string}`; " +
        "readonly text: string; readonly same: boolean; readonly title: string }> }"
    )
    expect(typeOf("totals")).toBe("{ readonly posts: number; readonly votes: number }")
    expect(typeOf("groups")).toBe(
      "{ readonly author: `user:${string}`; readonly count: number; readonly title?: unknown }"
    )
    expect(typeOf("odd")).toBe(
      "{ readonly more?: unknown; readonly first?: unknown; readonly loud?: unknown; readonly liked?: unknown }"
    )
    expect(typeOf("followed")).toBe("{ readonly author?: unknown; readonly title: string }")
    expect([typeOf("texts"), typeOf("maybe")]).toEqual(["string", "`user:${string}` | null"])
    expect(typeOf("edge")).toBe(
      "{ readonly in: `user:${string}`; readonly out: `post:${string}` | `comment:${string}`; readonly weight: number }"
    )
    expect(typeOf("unnamed")).toBe("{ readonly id: `nowhere:${string}`; readonly whatever?: unknown }")
    expect(typeOf("several")).toBe("{ readonly id?: unknown; readonly title?: unknown }")
  })
  it("let right uses pass and wrong ones not", () => {
    const rows = written(Object.entries(queries), schema)
    const right = `declare const row: Rows["plain"]
      export const votes: number = row.votes
      export const editor: string | undefined = row.editor
      export const sizes = row.parts.map(({ text }) => text.length)`
    expect(faultsOf(rows, right)).toEqual([])
    const wrong = ["row.votes.length", "row.nothing", "row.editor.length", "row.title = ''", "row.free.any"]
    expect(faultsOf(rows, ['declare const row: Rows["plain"]', ...wrong].join("\n"))).toEqual([
      expect.stringContaining("'length' does not exist on type 'number'"),
      expect.stringContaining("'nothing' does not exist"),
      expect.stringContaining("'row.editor' is possibly 'undefined'"),
      expect.stringContaining("'title' because it is a read-only"),
      expect.stringContaining("'row.free' is of type 'unknown'")
    ])
  })
  it("are written for views with a sample; `types.ts` has them flow to a page", async () => {
    const views = defineViews({
      posts: {
        params: Schema.Struct({ tag: Schema.String }),
        query: ({ tag }, user: { readonly id: string }) =>
          user.id === "ann"
            ? { surql: "SELECT id, votes FROM post WHERE tags CONTAINS $tag", params: { tag } }
            : undefined
      },
      mine: { params: Schema.Struct({}), query: () => ({ surql: "SELECT FROM post" }) }
    })
    const rows = await rowTypes(views, { schema, samples: { posts: [{ tag: "a" }, { id: "ann" }] } })
    expect(rows).toContain("  readonly posts: { readonly id: `post:${string}`; readonly votes: number }\n")
    expect(rows).toContain("  readonly mine: unknown\n")
    await expect(rowTypes(views, { schema, samples: { mine: [{}, { id: "ann" }] } })).rejects.toThrow(
      /query of the view mine cannot be read: .*line 1, column 13/
    )
    await expect(rowTypes(views, { schema, samples: { posts: [{ tag: "a" }, { id: "bob" }] } })).rejects.toThrow(
      "the view posts is refused to the user of its sample"
    )
  })
})
