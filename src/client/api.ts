/** The object that `connect` returns, as applications and bindings see it. */
import type { Followed } from "./live.ts"
import type { SharedView } from "./sharedView.ts"

/** Named views with their params and rows, as `ViewsOf` of `surreal-live-sidecar/views` makes it of a declaration. */
export type NamedTypes = { readonly [name: string]: { readonly params: object; readonly row: unknown } }

/** A client of named views `Views`; without type parameters, of views by id. */
export interface Live<Views extends NamedTypes = NamedTypes> {
  /**
   * Follows a view by its id, until it is disposed of. The caller states the type `Row` of the rows; it is not checked.
   */
  follow<Row = unknown>(view: string): Followed<Row>
  /** Follows a named view of the application's handler. */
  follow<Name extends keyof Views & string>(name: Name, params: Views[Name]["params"]): Followed<Views[Name]["row"]>
  /** The view that all its holders share; it is followed while there is a holder. For bindings. */
  view(name: string, params?: object): SharedView
  /** Ends all views and connections. */
  close(): void
  [Symbol.dispose](): void
}

/** The part of {@link Live} that a binding needs. */
export type Viewing = Pick<Live, "view">
