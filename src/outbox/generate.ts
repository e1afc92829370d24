/**
 * What is printed from the configuration: types of the backends, and the schema of their job tables.
 *
 * Neither needs a token, so references to the environment that only a runner needs may be unset here.
 */
import { Console, Effect } from "effect"
import { jobTable } from "../core/jobTableSchema.ts"
import * as SurrealSchema from "../core/surrealSchema.ts"
import { StartFault } from "../ports/StartFault.ts"
import type { Source } from "./run.ts"
import * as Types from "./types.ts"

export type Files = { readonly backends: ReadonlyArray<Source> } | { readonly faults: ReadonlyArray<string> }

const refused = (message: string): StartFault => new StartFault({ exitCode: 2, message })

export const types = (files: Effect.Effect<Files>): Effect.Effect<void, StartFault> =>
  Effect.flatMap(files, (found) => ("faults" in found ? Effect.fail(refused(found.faults.join("\n"))) : Console.log(Types.print(found.backends))))

/** Of the table named, else of the backends, else of what the SSP's configuration names. */
export const schema = (table: string | undefined, files: Effect.Effect<Files>, configured: Effect.Effect<ReadonlyArray<string>, StartFault>): Effect.Effect<void, StartFault> =>
  Effect.gen(function*() {
    const found = table === undefined ? yield* files : { backends: [] }
    const named = "backends" in found ? found.backends.map((backend) => backend.table) : []
    const tables = [...new Set(table !== undefined ? [table] : named.length > 0 ? named : yield* configured)]
    if (tables.length === 0) return yield* refused("no job table is known: name one with --table, or in svc.yml")
    yield* Console.log(SurrealSchema.printed(tables.map(jobTable)))
  })
