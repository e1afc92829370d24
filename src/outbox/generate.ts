/**
 * Texts printed from the configuration: types of the backends, and the schema of their job tables.
 *
 * Neither needs a token, so references to the environment that only a runner needs may be unset here.
 */
import { Console, Effect } from "effect"
import { jobTable } from "../core/surreal/jobTableSchema.ts"
import * as SurrealSchema from "../core/surreal/surrealSchema.ts"
import { StartFault } from "../ports/StartFault.ts"
import * as Run from "./run.ts"
import * as Types from "./types.ts"

type Refused = { readonly faults: ReadonlyArray<string> }

export type Files = { readonly backends: ReadonlyArray<Run.Source> } | Refused

/** The schema files of the backends, and the job tables that the file names without one. */
export type Schemas =
  | {
      readonly schemas: ReadonlyArray<{ readonly schema: string; readonly text: string }>
      readonly tables: ReadonlyArray<string>
    }
  | Refused

const refused = (message: string): StartFault => new StartFault({ exitCode: 2, message })

/** Why the files cannot be used, documents included. */
export const faultsOf = (found: Files): ReadonlyArray<string> =>
  "faults" in found ? found.faults : Run.faultsOf(found.backends).map(({ path, reason }) => `${path} ${reason}`)

export const types = (files: Effect.Effect<Files>): Effect.Effect<void, StartFault> =>
  Effect.flatMap(files, (found) => {
    const faults = faultsOf(found)
    return "faults" in found || faults.length > 0
      ? Effect.fail(refused(faults.join("\n")))
      : Console.log(Types.print(found.backends))
  })

/**
 * The table named, as the specification has it; else what the backends' files say, and all other job tables as the
 * specification has them.
 */
export const schema = (table: string | undefined, files: Effect.Effect<Schemas>): Effect.Effect<void, StartFault> =>
  Effect.gen(function* () {
    const found: Schemas = table === undefined ? yield* files : { schemas: [], tables: [table] }
    if ("faults" in found) return yield* refused(found.faults.join("\n"))
    const { schemas, tables } = found
    if (schemas.length + tables.length === 0)
      return yield* refused("no job table is known: name one with --table, or in svc.yml")
    const made = tables.length === 0 ? [] : [SurrealSchema.printed(tables.map(jobTable))]
    yield* Console.log(
      [...schemas.map(({ schema: file, text }) => `-- ${file}\n${text.trimEnd()}\n`), ...made].join("\n")
    )
  })
