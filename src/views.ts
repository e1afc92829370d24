/**
 * The door of named views (library), for an application's server: which views its users may follow, and the handler
 * that gives them out.
 *
 * `const views = defineViews({ posts: { params, query: (params, user: User) => ({ surql, params }) } })`, and
 * `views.handler({ url, secret, authenticate })` is a function from a Request to a Response, for the route that pages
 * name in `connect({ views: "/views" })`. A page imports `type Views = ViewsOf<typeof views>`, no code.
 */
import * as Declaration from "./views/declaration.ts"
import { type HandlerOptions, makeHandler, type ViewsHandler } from "./views/handler.ts"
import { worldOf } from "./views/world.ts"

type AnySchema = Declaration.AnySchema
type Schemas = { readonly [name: string]: AnySchema }
/** An intersection, because the compiler infers one set of types from one mapped type. */
type Declarations<User, Params extends Schemas, Rows> = {
  readonly [Name in keyof Params]: Declaration.ViewDeclaration<Params[Name], User>
} & { readonly [Name in keyof Rows]: Declaration.RowDeclaration<Rows[Name]> }

export type ViewUser = Declaration.ViewUser
export type ViewQuery = Declaration.ViewQuery
/** Named views with params and rows, for `connect<ViewsOf<typeof views>>`; `Rows` is what {@link rowTypes} writes. */
export type ViewsOf<
  Defined extends { readonly declarations: { readonly [name: string]: Declaration.AnyDeclaration } },
  Rows = object
> = Declaration.ViewsOf<Defined, Rows>
export type ViewsHandlerOptions<User extends ViewUser> = HandlerOptions<User>

export interface Views<User extends ViewUser, Declared> {
  readonly declarations: Declared
  /** One handler for all of them; it counts views by user, so make one for the process. */
  handler(options: ViewsHandlerOptions<User>): ViewsHandler
}

/** Declares named views. Throws where a name cannot be one. */
export const defineViews = <Params extends Schemas, Rows, User extends ViewUser = ViewUser>(
  declarations: Declarations<User, Params, Rows>
): Views<User, Declarations<User, Params, Rows>> => {
  const faults = Declaration.faultsOf(Object.keys(declarations))
  if (faults.length > 0) throw new Error(faults.join("; "))
  return {
    declarations,
    handler: (options) => makeHandler(declarations, options, worldOf(options.log))
  }
}

type Declared = { readonly [name: string]: Declaration.AnyDeclaration }

/** For each view what its `query` is called with: params and a user, of which the query's text is all that counts. */
export type RowSamples<Views extends Declared> = { readonly [Name in keyof Views]?: Parameters<Views[Name]["query"]> }

/**
 * A TypeScript file with the type of each view's rows, as the interface `Rows`: from what the query selects and the
 * fields that `schema` declares (`DEFINE FIELD`, as in an export of the database). What neither says is `unknown`, and
 * so is a view without a sample. Throws where a query cannot be read, or is refused to the sample's user.
 */
export const rowTypes = async <Views extends Declared>(
  views: { readonly declarations: Views },
  { samples, schema }: { readonly schema: string; readonly samples: RowSamples<Views> }
): Promise<string> => {
  const queries: Array<readonly [string, string | undefined]> = []
  for (const [name, { query }] of Object.entries(views.declarations)) {
    const sample = samples[name]
    const asked = sample === undefined ? undefined : await query(sample[0], sample[1])
    if (sample !== undefined && asked === undefined)
      throw new Error(`the view ${name} is refused to the user of its sample`)
    queries.push([name, asked?.surql])
  }
  // Loaded where types are written: the parser is more than all the rest.
  const { written } = await import("./views/rowTypes.ts")
  return written(queries, schema)
}
