/**
 * The door of the client (library): views of the service in a browser, a worker, Node or Deno, as rows that follow the
 * data.
 *
 * `const live = connect({ url, token })`, `const posts = live.follow<Post>("posts:1")`, and `posts.rows` is what the
 * view's query answers now. Nothing is imported: no dependency, no Effect. Classes behind it have `#private` fields,
 * which a bundler may give short names; that is a twentieth of what a page loads.
 */
import type * as Api from "./client/api.ts"
import type { Fault } from "./client/faults.ts"

import * as Json from "./client/json.ts"

import { Followed, LiveClient, type Options } from "./client/live.ts"
import type { State } from "./client/sharedView.ts"
import { world } from "./client/world.ts"

export type ConnectOptions = Options
/** A view that is followed until it is disposed of. */
export type LiveView<Row = unknown> = Followed<Row>
/** A state of a view: rows, status and what comes with them. Immutable. */
export type LiveState<Row = unknown> = State<Row>
/** Why a view is not live: a code to decide by and a sentence to understand. */
export type LiveError = Fault

export type NamedTypes = Api.NamedTypes
export type Live<Views extends NamedTypes = NamedTypes> = Api.Live<Views>

/** Option `json` of {@link connect}: integers beyond 2^53 are `bigint`. Throws where the text is no JSON. */
export const jsonWithBigints: (text: string) => unknown = Json.jsonWithBigints

/**
 * A client. It opens no connection before a view is followed. Throws where the options make no sense; whatever goes
 * wrong later is in the status of the views.
 */
export const connect = <Views extends NamedTypes = NamedTypes>(options: ConnectOptions): Live<Views> => {
  if (options.url === undefined && options.views === undefined)
    throw new Error("connect needs `url`, the address of the service, or `views`, the application's handler")
  const client = new LiveClient(options, world)
  return {
    follow: (name: string, params?: object) => new Followed(client.view(name, params)),
    view: (name, params) => client.view(name, params),
    close: () => client.close(),
    [Symbol.dispose]: () => client.close()
  }
}
