/**
 * What `connect` answers, as applications and bindings see it.
 */
import type { Followed } from "./live.ts"
import type { SharedView } from "./sharedView.ts"

/** Named views with their params and rows, as `ViewsOf` of `surreal-live-sidecar/views` makes it of a declaration. */
export type NamedTypes = { readonly [name: string]: { readonly params: object; readonly row: unknown } }

export interface Live<Views extends NamedTypes = NamedTypes> {
  /** Follows a view by its id, until it is disposed of. Rows are as `Row` says; nothing checks that. */
  follow<Row = unknown>(view: string): Followed<Row>
  /** Follows a named view of the application's handler. */
  follow<Name extends keyof Views & string>(name: Name, params: Views[Name]["params"]): Followed<Views[Name]["row"]>
  /** The view that all share, which is followed once it is held; for bindings. */
  view(name: string, params?: object): SharedView
  /** Lets go of everything. */
  close(): void
  [Symbol.dispose](): void
}

/** What a binding needs of it. */
export type Viewing = Pick<Live, "view">
