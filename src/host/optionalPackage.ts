/** Loads a package that is installed only where it is needed; without it a start ends and says what to install. */
import { Effect } from "effect"
import { firstLineOf } from "../core/reason.ts"
import { StartFault } from "../ports/StartFault.ts"

/** `wish`: the setting and what it asks for. `version` is the one that fits. */
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
