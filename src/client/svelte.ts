/**
 * Views as Svelte stores: `$posts.rows` follows the view while a component is subscribed.
 *
 * Implements only the contract of stores, so nothing is imported; RxJS and others that accept `subscribe` work too.
 */
import type { Live, NamedTypes, Viewing } from "./api.ts"
import type { State } from "./sharedView.ts"

/** A Svelte store with nothing but `subscribe`. */
export interface ViewStore<Row> {
  /** Calls `run` at once and after each change, until the returned function is called. */
  subscribe(run: (state: State<Row>) => void): () => void
}

/** A store of a view's state. Each subscriber follows the view; they share it. */
export function viewStore<Row = unknown>(live: Viewing, view: string): ViewStore<Row>
export function viewStore<Views extends NamedTypes, Name extends keyof Views & string>(
  live: Live<Views>,
  name: Name,
  params: Views[Name]["params"]
): ViewStore<Views[Name]["row"]>
export function viewStore(live: Viewing, name: string, params?: object): ViewStore<unknown> {
  return {
    subscribe: (run) => {
      const shared = live.view(name, params)
      const release = shared.hold()
      run(shared.state)
      const stop = shared.subscribe(() => run(shared.state))
      return () => {
        stop()
        release()
      }
    }
  }
}
