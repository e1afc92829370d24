/**
 * Data folders that only the service's own user may open.
 *
 * The records of all clients are stored there in the clear. A process mask covers the files, because SQLite and the log
 * create theirs by themselves; an existing folder keeps its mode, since its owner may have meant it, and causes a
 * warning.
 */

import { mkdirSync, statSync } from "node:fs"
import { Effect } from "effect"

const others = 0o077

/** Makes all files that this process creates from now on private (0600, folders 0700). */
export const restrictFileMode = (): void => {
  if (process.platform !== "win32") process.umask(others)
}

/** Creates the folder if it is missing; throws the file system's error. Answers a warning about its mode, if any. */
const make = (folder: string): string | undefined => {
  if (mkdirSync(folder, { recursive: true, mode: 0o700 }) !== undefined) return undefined
  const mode = statSync(folder).mode & 0o777
  if (process.platform === "win32" || (mode & others) === 0) return undefined
  return `the data folder ${folder} is open to other users of this machine (mode 0${mode.toString(8)}); chmod 700 closes it`
}

/** Creates the folder if it is missing, and warns about one that others may open. */
export const privateFolder = <E>(folder: string, asFault: (reason: string) => E): Effect.Effect<void, E> =>
  Effect.flatMap(
    Effect.try({
      try: () => make(folder),
      catch: (error) => asFault(error instanceof Error ? error.message : String(error))
    }),
    (warning) => (warning === undefined ? Effect.void : Effect.logWarning(warning))
  )
