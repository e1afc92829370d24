/**
 * Views in React: the component that shows a view follows it, from its first commit until it is unmounted.
 *
 * Unchanged rows are the same objects, so that a row's component in `memo` renders only when its row changes.
 * StrictMode mounts twice, within the client's grace: still one request.
 */
import { useCallback, useSyncExternalStore } from "react"
import type { Live, NamedTypes, Viewing } from "./api.ts"
import type { SharedView, State } from "./sharedView.ts"

const useShared = (shared: SharedView): State<unknown> => {
  const subscribe = useCallback(
    (listener: () => void) => {
      const stop = shared.subscribe(listener)
      const release = shared.hold()
      return () => {
        stop()
        release()
      }
    },
    [shared]
  )
  const read = useCallback(() => shared.state, [shared])
  return useSyncExternalStore(subscribe, read, read)
}

/** The promise of a view's first state, shared by all renders that wait for it. */
const firsts = new WeakMap<SharedView, Promise<void>>()

/** Follows the view until there is something to show; the component itself holds the view before the grace ends. */
const first = (shared: SharedView): Promise<void> => {
  const known = firsts.get(shared)
  if (known !== undefined) return known
  const promise = new Promise<void>((done) => {
    const release = shared.hold()
    const look = (): void => {
      if (shared.state.status === "loading") return
      stop()
      firsts.delete(shared)
      release()
      done()
    }
    const stop = shared.subscribe(look)
  })
  firsts.set(shared, promise)
  return promise
}

/** The state of a view: rows, status and error. `params` may be a new object in each render. */
export function useView<Row = unknown>(live: Viewing, view: string): State<Row>
export function useView<Views extends NamedTypes, Name extends keyof Views & string>(
  live: Live<Views>,
  name: Name,
  params: Views[Name]["params"]
): State<Views[Name]["row"]>
export function useView(live: Viewing, name: string, params?: object): State<unknown> {
  return useShared(live.view(name, params))
}

/**
 * As {@link useView}, below a `Suspense`, which shows its fallback until the first rows are there. A view that fails
 * before it had any throws an `Error` whose `cause` is the fault, for an error boundary.
 */
export function useViewSuspense<Row = unknown>(live: Viewing, view: string): State<Row>
export function useViewSuspense<Views extends NamedTypes, Name extends keyof Views & string>(
  live: Live<Views>,
  name: Name,
  params: Views[Name]["params"]
): State<Views[Name]["row"]>
export function useViewSuspense(live: Viewing, name: string, params?: object): State<unknown> {
  const shared = live.view(name, params)
  const state = useShared(shared)
  if (state.status === "loading") throw first(shared)
  if (state.status === "error" && state.rows.length === 0)
    throw new Error(`${shared.key}: ${state.error?.message}`, { cause: state.error })
  return state
}
