/**
 * An application's declaration of its named views, and the types derived from it.
 *
 * Only types, except {@link faultsOf}: a page imports the type of the declaration and none of its code.
 */
import type { Schema } from "effect"

/** The user as the application knows them. Limits count by `id`, and tokens are revoked by it. */
export interface ViewUser {
  readonly id: string
}

/** A query and its values. Values are bound; never splice one into `surql`. */
export interface ViewQuery {
  readonly surql: string
  readonly params?: { readonly [name: string]: unknown }
}

/** A schema of params or rows. It may transform, but it runs without services. */
export type AnySchema = Schema.Schema.AnyNoContext

/** One named view. */
export interface ViewDeclaration<Params extends AnySchema, User> {
  /** Schema of the parameters that a page may send; the handler refuses others before `query` is called. */
  readonly params: Params
  /** The query for this user; undefined: the user may not see the view. */
  readonly query: (
    params: Schema.Schema.Type<Params>,
    user: User
  ) => ViewQuery | undefined | Promise<ViewQuery | undefined>
}

/** Type of the rows of a view. */
export interface RowDeclaration<Row> {
  /** A schema used only for its type: rows are not checked. */
  readonly row?: Row
}

/** Any declaration, without its types. */
export type AnyDeclaration = ViewDeclaration<AnySchema, never>

/**
 * Named views with their params and rows, as `connect` of `surreal-live-sidecar/client` takes them. `Rows`: types that
 * `rowTypes` writes; they override declared ones.
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
