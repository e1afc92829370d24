/**
 * What the door of the SSP loads for commands that work on the database and leave: printing, installing, removing its setup.
 *
 * Apart from what serves, because these commands open no store, no port and no log of the service.
 */
import { Effect } from "effect"
import * as ServerClient from "./host/serverClient.ts"
import type { SspConfigShape } from "./ssp/Config.ts"
import * as DatabaseSetup from "./ssp/DatabaseSetup.ts"

export const run = (config: SspConfigShape, command: DatabaseSetup.Command, options: DatabaseSetup.SetupOptions) =>
  DatabaseSetup.run(config, command, options).pipe(Effect.provide(ServerClient.layer(config)))
