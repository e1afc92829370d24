/**
 * Views in Solid: a signal of a view's state, followed until its owner is cleaned up.
 *
 * Unchanged rows are the same objects; `For` compares by identity.
 */
import { type Accessor, createComputed, createSignal, onCleanup, untrack } from "solid-js"
import type { Live, NamedTypes, Viewing } from "./api.ts"
import type { State } from "./sharedView.ts"

/** The state of a view. Params may be a function: when they change, another view is followed. */
export function createView<Row = unknown>(live: Viewing, view: string): Accessor<State<Row>>
export function createView<Views extends NamedTypes, Name extends keyof Views & string>(
  live: Live<Views>,
  name: Name,
  params: Views[Name]["params"] | Accessor<Views[Name]["params"]>
): Accessor<State<Views[Name]["row"]>>
export function createView(live: Viewing, name: string, params?: object): Accessor<State<unknown>> {
  const paramsNow = () => (typeof params === "function" ? (params as Accessor<object>)() : params)
  const [state, setState] = createSignal(untrack(() => live.view(name, paramsNow()).state))
  createComputed(() => {
    const shared = live.view(name, paramsNow())
    const stop = shared.subscribe(() => setState(shared.state))
    const release = shared.hold()
    setState(shared.state)
    onCleanup(() => {
      stop()
      release()
    })
  })
  return state
}
