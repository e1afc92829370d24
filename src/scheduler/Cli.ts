/**
 * The command line of the scheduler: what may be asked besides serving.
 *
 * Checking a WAL is a command of its own, because an operator wants to know what a file holds before a start decides about it.
 */
import { Console, Effect } from "effect"
import { StartFault } from "../ports/StartFault.ts"
import { startFault, type WalFailed } from "../ports/Wal.ts"

const verifyFlag = "--verify-wal"

/** Does what was asked for; serves when nothing was. `verify` answers what it found, line by line. */
export const main = <A, E, R>(args: ReadonlyArray<string>, serve: Effect.Effect<A, E, R>, verify: (path: string) => Effect.Effect<ReadonlyArray<string>, WalFailed>): Effect.Effect<void, E | StartFault, R> => {
  const [flag, path, ...rest] = args
  if (flag === undefined) return Effect.asVoid(serve)
  if (flag !== verifyFlag || path === undefined || rest.length > 0) {
    return Effect.fail(new StartFault({ exitCode: 2, message: `the command line is not understood: ${args.join(" ")}\nUsage: scheduler [${verifyFlag} <path>]` }))
  }
  return verify(path).pipe(Effect.mapError(startFault), Effect.flatMap(Effect.forEach((line) => Console.log(line), { discard: true })))
}
