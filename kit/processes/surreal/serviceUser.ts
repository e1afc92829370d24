/**
 * The database user that the service runs as in tests beside a database: the one of `--least-privilege`, and no more.
 */
import * as LeastPrivilege from "../../../src/core/surreal/leastPrivilege.ts"
import type { RpcServer } from "./RpcServer.ts"

/** Defines it and answers its name and password; job tables are defined as the specification has them. */
export const serviceUser = async (
  server: RpcServer,
  newJobTables: ReadonlyArray<string> = []
): Promise<{ readonly user: string; readonly pass: string }> => {
  const [user, pass] = ["svc_sidecar", "a password of its own"]
  const [passHash] = await server.ask<[string]>("n", "d", "RETURN crypto::argon2::generate($pass)", { pass })
  await server.ask("n", "d", LeastPrivilege.script({ name: user, passHash, jobTables: [], newJobTables }))
  return { user, pass }
}
