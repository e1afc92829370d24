/** The change table (D44) of a database under test: its definition, and whether its rows have been taken. */

import type { Surreal } from "surrealdb"
import * as Changes from "../../src/core/surreal/surrealChanges.ts"
import * as Schema from "../../src/core/surreal/surrealSchema.ts"
import { until } from "../processes/Door.ts"
import type { RpcServer } from "../processes/surreal/RpcServer.ts"

/** A server, or a client of it. */
export type Asked = Pick<RpcServer, "ask">

/** The script that announces the writes to these tables. */
export const install = (...tables: ReadonlyArray<string>): string =>
  Schema.script([...Schema.sharedDefinitions, Changes.changeTableDefinition, Changes.events(tables)])

/** How many rows wait in the change table. */
export const left = async (server: Asked): Promise<number> =>
  (await server.ask<[ReadonlyArray<unknown>]>("n", "d", `SELECT id FROM ${Schema.changeTable}`))[0].length

/** A client's questions, which go to the database that it has selected. */
export const askedOver = (db: Surreal): Asked => ({ ask: async (_, __, query) => (await db.query(query)) as never })

/** Whether rows wait, however many. */
export const waits = async (server: Asked): Promise<boolean> =>
  (await server.ask<[ReadonlyArray<unknown>]>("n", "d", `SELECT id FROM ${Schema.changeTable} LIMIT 1`))[0].length > 0

/** Ends when everything that was written is durable at its reader. */
export const taken = async (server: Asked, boundMs?: number): Promise<void> =>
  void (await until("the change table is empty", async () => !(await waits(server)), boundMs))
