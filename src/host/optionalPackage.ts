/**
 * Loads a package that is installed only if it is needed; without it a start ends with a fault that tells what to
 * install.
 */
import { Effect } from "effect"
import { firstLineOf } from "../core/reason.ts"
import { StartFault } from "../ports/StartFault.ts"

/** `wish`: the setting and what it asks for. `version`: the supported one. */
export const load = <A>(
  wish: string,
  { name, version }: { readonly name: string; readonly version: string },
  from: () => Promise<A>
): Effect.Effect<A, StartFault> =>
  Effect.tryPromise({
    try: from,
    catch: (error) =>
      new StartFault({
        exitCode: 2,
        message: `${wish}, which needs the optional package ${name}: npm install ${name}@${version} (${firstLineOf(error)})`
      })
  })
