/**
 * The syntax tree of the query language: what the parser makes and everything else (evaluator, analysis, engine) reads.
 *
 * Nodes are plain data with a `kind`; `at` is the offset in the query text, for messages. Nodes are never mutated, so
 * the engine may rewrite a tree by copying (lifting constants into parameters).
 */
import type { Value } from "../values/value.ts"

export type Statement =
  | Select
  | Return
  | { readonly kind: "infoDb"; readonly at: number }
  | { readonly kind: "infoTable"; readonly at: number; readonly table: string }

export interface Return {
  readonly kind: "return"
  readonly at: number
  readonly value: Expr
  readonly fetch: ReadonlyArray<Idiom>
}

export interface Select {
  readonly kind: "select"
  readonly at: number
  /** `SELECT VALUE e`: exactly one field. */
  readonly value: boolean
  readonly fields: ReadonlyArray<Field>
  readonly omit: ReadonlyArray<Idiom>
  readonly only: boolean
  readonly from: ReadonlyArray<Expr>
  readonly where: Expr | undefined
  readonly split: ReadonlyArray<Idiom>
  /** GROUP BY keys; `[]` is GROUP ALL; `undefined` is no grouping. */
  readonly group: ReadonlyArray<Idiom> | undefined
  readonly order: ReadonlyArray<OrderTerm>
  readonly limit: Expr | undefined
  readonly start: Expr | undefined
  readonly fetch: ReadonlyArray<Idiom>
}

/** `*`, or an expression with the path it is shown under (alias, or the database's name for an unnamed expression). */
export type Field =
  | { readonly kind: "all"; readonly at: number }
  | { readonly kind: "expr"; readonly at: number; readonly expr: Expr; readonly alias: Idiom | undefined }

export interface OrderTerm {
  readonly idiom: Idiom
  readonly descending: boolean
  readonly collate: boolean
  readonly numeric: boolean
}

export type BinaryOp =
  | "OR"
  | "AND"
  | "??"
  | "?:"
  | "="
  | "!="
  | "*="
  | "?="
  | "<"
  | "<="
  | ">"
  | ">="
  | "+"
  | "-"
  | "*"
  | "/"
  | "%"
  | "**"
  | "IN"
  | "NOT IN"
  | "CONTAINS"
  | "CONTAINSNOT"
  | "CONTAINSALL"
  | "CONTAINSANY"
  | "CONTAINSNONE"
  | "ALLINSIDE"
  | "ANYINSIDE"
  | "NONEINSIDE"
  | "OUTSIDE"
  | "INTERSECTS"

export type Expr =
  | {
      readonly kind: "literal"
      readonly at: number
      readonly value: Value /** as written, for names */
      readonly text: string
    }
  | { readonly kind: "param"; readonly at: number; readonly name: string }
  | { readonly kind: "array"; readonly at: number; readonly items: ReadonlyArray<Expr> }
  | { readonly kind: "set"; readonly at: number; readonly items: ReadonlyArray<Expr> }
  | { readonly kind: "object"; readonly at: number; readonly entries: ReadonlyArray<readonly [string, Expr]> }
  /** `person:[$x, 1]`: a record id whose key has to be evaluated. A constant one is a literal. */
  | { readonly kind: "record"; readonly at: number; readonly table: string; readonly key: Expr }
  /** `person:[$x]..[$y]`: a record range with an end that has to be evaluated. A constant one is a literal. */
  | {
      readonly kind: "recordRange"
      readonly at: number
      readonly table: string
      readonly from: Expr | undefined
      readonly fromInclusive: boolean
      readonly to: Expr | undefined
      readonly toInclusive: boolean
    }
  | { readonly kind: "unary"; readonly at: number; readonly op: "-" | "!" | "+"; readonly operand: Expr }
  | {
      readonly kind: "binary"
      readonly at: number
      readonly op: BinaryOp
      readonly left: Expr
      readonly right: Expr
      /** Written `==`: equal without matching text with a pattern; also used in names of unnamed results. */
      readonly double?: true
    }
  | {
      readonly kind: "range"
      readonly at: number
      readonly from: Expr | undefined
      readonly fromInclusive: boolean
      readonly to: Expr | undefined
      readonly toInclusive: boolean
    }
  | { readonly kind: "cast"; readonly at: number; readonly type: string; readonly operand: Expr }
  | { readonly kind: "call"; readonly at: number; readonly name: string; readonly args: ReadonlyArray<Expr> }
  /** `types`: what each parameter is coerced to; `result`: what the body is coerced to. */
  | {
      readonly kind: "closure"
      readonly at: number
      readonly params: ReadonlyArray<string>
      readonly types: ReadonlyArray<string | undefined>
      readonly result: string | undefined
      readonly body: Expr
      /** The database-defined function (`fn::net`) that this closure is the definition of. */
      readonly defined?: string
    }
  /** `$f(1)`: calls a closure. */
  | { readonly kind: "invoke"; readonly at: number; readonly fn: Expr; readonly args: ReadonlyArray<Expr> }
  /**
   * `{ LET $a = 1; $a + 1 }`: steps in order, the value of the last. With `catches` a RETURN inside ends here (a field,
   * a filter, a closure).
   */
  | { readonly kind: "block"; readonly at: number; readonly steps: ReadonlyArray<Step>; readonly catches: boolean }
  | {
      readonly kind: "if"
      readonly at: number
      readonly branches: ReadonlyArray<readonly [Expr, Expr]>
      readonly otherwise: Expr | undefined /** Written with THEN and END. */
      readonly worded?: true
    }
  | { readonly kind: "subquery"; readonly at: number; readonly query: Statement }
  /** A bare table name where a source is expected (FROM); elsewhere a bare name is an idiom. */
  | { readonly kind: "table"; readonly at: number; readonly name: string }
  | Idiom

/** Parameters that stand for the row; `@` is written without a dollar. */
export const rowParams: ReadonlySet<string> = new Set(["this", "self", "@"])

/** A step of a block: `LET $name: type = value`, or a value (`name` undefined). */
export interface Step {
  readonly name: string | undefined
  readonly type: string | undefined
  readonly value: Expr
}

/** A path. `start` undefined: from the current document. `a.b` is `{ start: undefined, parts: [field a, field b] }`. */
export interface Idiom {
  readonly kind: "idiom"
  readonly at: number
  readonly start: Expr | undefined
  readonly parts: ReadonlyArray<Part>
}

export type Part =
  | { readonly kind: "field"; readonly name: string }
  | { readonly kind: "index"; readonly index: Expr }
  | { readonly kind: "all" }
  | { readonly kind: "last" }
  | { readonly kind: "flatten" }
  | { readonly kind: "optional" }
  | { readonly kind: "where"; readonly where: Expr }
  | { readonly kind: "method"; readonly name: string; readonly args: ReadonlyArray<Expr> }
  | { readonly kind: "destructure"; readonly entries: ReadonlyArray<Destructured> }
  /**
   * `->edge`, `<-(a, b WHERE c LIMIT 1)`, `->(SELECT ... FROM e ...)`; no tables is `?`, any. `ranges`: the edge ids a
   * table is limited to (`likes:1..9`); `fields`: the names after FIELD, which have no effect here; `query`: the step's
   * own filter, order and limit; `alias`: name of the column.
   */
  | {
      readonly kind: "graph"
      readonly at: number
      readonly direction: "out" | "in" | "both"
      readonly tables: ReadonlyArray<string>
      readonly ranges: ReadonlyArray<Expr | undefined>
      readonly fields: ReadonlyArray<string | undefined>
      readonly where: Expr | undefined
      readonly limit: Expr | undefined
      readonly start: Expr | undefined
      readonly query: Select | undefined
      readonly alias: Idiom | undefined
    }
  /** `{1..3+path}(->a->b)`; `inclusive` keeps the starting record. */
  | {
      readonly kind: "recurse"
      readonly at: number
      readonly min: number
      readonly max: number | undefined
      readonly mode: "plain" | "path" | "collect" | "shortest"
      readonly inclusive: boolean
      readonly target: Expr | undefined
      readonly body: ReadonlyArray<Part>
    }
  /** `@` inside a recursion: the place where the tree continues. */
  | { readonly kind: "repeat"; readonly at: number }

export interface Destructured {
  readonly name: string
  /** Written `name: expr` (its own path) rather than `name`, `name.*` or `name.{..}`. */
  readonly aliased: boolean
  /** Path below the current value; just `name` if the entry is only a name. */
  readonly expr: Expr
}
