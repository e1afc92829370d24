/**
 * What an application declares of its named views, and the types that follow from it.
 *
 * Types alone but for {@link faultsOf}: a page imports the type of the declaration and none of its code.
 */
import type { Schema } from "effect"

/** As the application knows the user. `id` is what limits are counted by and tokens are revoked by. */
export interface ViewUser {
  readonly id: string
}

/** A query and the values that it is given. Values are bound; never splice one into `surql`. */
export interface ViewQuery {
  readonly surql: string
  readonly params?: { readonly [name: string]: unknown }
}

/** A schema of params or rows. It may transform, but it runs without services. */
export type AnySchema = Schema.Schema.AnyNoContext

export interface ViewDeclaration<Params extends AnySchema, User> {
  /** Schema of the parameters that a page may send. Others are refused before `query` is called. */
  readonly params: Params
  /** The query for this user; undefined means that this user may not have it. */
  readonly query: (
    params: Schema.Schema.Type<Params>,
    user: User
  ) => ViewQuery | undefined | Promise<ViewQuery | undefined>
}

export interface RowDeclaration<Row> {
  /** The rows, for their type alone: nothing is checked by it. */
  readonly row?: Row
}

/** Any declaration, for where its types no longer matter. */
export type AnyDeclaration = ViewDeclaration<AnySchema, never>

/**
 * Named views with their params and rows, as `connect` of `surreal-live-sidecar/client` takes them. `Rows` are types
 * that `rowTypes` writes; they go before those that are declared.
 */
export type ViewsOf<
  Views extends { readonly declarations: { readonly [name: string]: AnyDeclaration } },
  Rows = object
> = {
  readonly [Name in keyof Views["declarations"] & string]: {
    readonly params: Schema.Schema.Encoded<Views["declarations"][Name]["params"]>
    readonly row: Name extends keyof Rows
      ? Rows[Name]
      : Views["declarations"][Name] extends RowDeclaration<infer Row extends AnySchema>
        ? Schema.Schema.Encoded<Row>
        : unknown
  }
}

const nameForm = /^[A-Za-z][\w-]{0,63}$/

/** Faults of the view names in a declaration: names become part of view ids, so their form is restricted. */
export const faultsOf = (names: ReadonlyArray<string>): ReadonlyArray<string> =>
  names
    .filter((name) => !nameForm.test(name))
    .map((name) => `${JSON.stringify(name)} is no name of a view: a letter, then letters, digits, _ and -, up to 64`)
