/**
 * Texts generated from the configuration: types of the backends, and the schema of their job tables.
 *
 * Neither needs a token, so environment references that only a runner needs may be unset here.
 */
import { Console, Effect } from "effect"
import { jobTable } from "../core/surreal/jobTableSchema.ts"
import * as SurrealSchema from "../core/surreal/surrealSchema.ts"
import { StartFault } from "../ports/StartFault.ts"
import * as Run from "./run.ts"
import * as Types from "./types.ts"

type Refused = { readonly faults: ReadonlyArray<string> }

/** The backends with their documents, or the faults of the configuration. */
export type Files = { readonly backends: ReadonlyArray<Run.Source> } | Refused

/** The schema files of the backends, and the job tables without one; or the faults. */
export type Schemas =
  | {
      readonly schemas: ReadonlyArray<{ readonly schema: string; readonly text: string }>
      readonly tables: ReadonlyArray<string>
    }
  | Refused

const refused = (message: string): StartFault => new StartFault({ exitCode: 2, message })

/** Faults of the configuration and of its documents. */
export const faultsOf = (found: Files): ReadonlyArray<string> =>
  "faults" in found ? found.faults : Run.faultsOf(found.backends).map(({ path, reason }) => `${path} ${reason}`)

/** Prints the types of the backends; fails with all faults, exit code 2. */
export const types = (files: Effect.Effect<Files>): Effect.Effect<void, StartFault> =>
  Effect.flatMap(files, (found) => {
    const faults = faultsOf(found)
    return "faults" in found || faults.length > 0
      ? Effect.fail(refused(faults.join("\n")))
      : Console.log(Types.print(found.backends))
  })

/**
 * Prints the schema of job tables: the named table by the specification, or without a name the backends' own files and,
 * for all other job tables, the specification's schema.
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
