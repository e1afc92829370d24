/** Loads a package that is installed only where it is needed; without it a start ends and says what to install. */
import { Effect } from "effect"
import { StartFault } from "../ports/StartFault.ts"

/** The first line of an error: the rest is of the runtime. */
export const firstLineOf = (error: unknown): string =>
  error instanceof Error ? error.message.split("\n", 1)[0]! : String(error)

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
