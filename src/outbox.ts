/**
 * The door of the outbox client (library): `outbox(db, { path })` answers `run` (D40).
 *
 * `const db = Object.assign(surreal, await outbox<Backends>(surreal, { path: "svc.yml" }))` makes it `db.run(...)`;
 * `Backends` is what `jobs types` prints. Errors are in `outbox/errors`.
 */
import * as OutboxFiles from "./host/outboxFiles.ts"
import type { AnyBackends, Connection, Outbox } from "./outbox/call.ts"
import { OutboxConfigInvalid } from "./outbox/errors.ts"
import * as Run from "./outbox/run.ts"

export interface FromFile {
  /** Path of `svc.yml`. */
  readonly path: string
}

export interface FromDocuments {
  /** Backends with their OpenAPI documents as they are, for where there are no files. */
  readonly backends: ReadonlyArray<Omit<Run.Source, "spec">>
}

/** Rejects with `OutboxConfigInvalid`, naming every fault, when files or documents cannot be used. */
export const outbox = async <T = AnyBackends>(db: Connection, config: FromFile | FromDocuments): Promise<Outbox<T>> => {
  if ("backends" in config)
    return Run.make<T>(
      db,
      config.backends.map((source) => ({ ...source, spec: "document" }))
    )
  const files = await OutboxFiles.read(config.path)
  if ("faults" in files) throw OutboxConfigInvalid.of(files.faults.map((reason) => ({ path: "svc.yml", reason })))
  return Run.make<T>(db, files.backends)
}
