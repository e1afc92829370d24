/** Reads a view's result for a caller with a callback, once no registration of the view is under way. */
import { Either, Exit } from "effect"
import { viewKey } from "../../core/view/viewId.ts"
import type { ViewNotFound, ViewQuarantined } from "../viewTypes.ts"
import type { Arrivals } from "./arrivals.ts"
import type { ReadAnswer, ReadRequest, ResultReader } from "./reading.ts"
import type { RegisteredView } from "./registry.ts"

interface LookingParts {
  readonly arrivals: Pick<Arrivals, "whenSettled">
  readonly reading: Pick<ResultReader, "answer">
  /** The view of a key, or why there is none. */
  readonly find: (key: string) => Either.Either<RegisteredView, ViewNotFound | ViewQuarantined>
}

/** Calls `done` once; if that is later, returns a function that abandons the read. */
export const readView = (
  { arrivals, find, reading }: LookingParts,
  id: string,
  how: ReadRequest,
  done: (looked: Exit.Exit<ReadAnswer, ViewNotFound | ViewQuarantined>) => void
): (() => void) | undefined => {
  const key = viewKey(id) ?? ""
  let isOver = false
  let abandon: (() => void) | undefined
  const end: typeof done = (looked) => {
    isOver = true
    done(looked)
  }
  const begin = (): void => {
    if (isOver || arrivals.whenSettled(key, begin)) return
    const found = find(key)
    if (Either.isLeft(found)) return end(Exit.fail(found.left))
    abandon = reading.answer(found.right, id, how, (looked) => {
      if (Exit.isFailure(looked)) end(Exit.failCause(looked.cause))
      // The view was replaced during the read.
      else if (looked.value === undefined) begin()
      else end(Exit.succeed(looked.value))
    })
  }
  begin()
  if (isOver) return undefined
  return () => {
    isOver = true
    abandon?.()
  }
}
