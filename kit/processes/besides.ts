/**
 * Databases on disk and nodes beside them, for the tests of one file: each is stopped when its test is over, their
 * folders go with the file.
 */
import { join } from "node:path"
import { afterAll, onTestFinished } from "vitest"
import { removeFolder, temporaryFolder } from "./Door.ts"
import { type NodeBeside, startBeside } from "./nodeBeside.ts"
import { RpcServer } from "./surreal/RpcServer.ts"

export interface Besides {
  /** The path of a folder that is not there yet. */
  readonly fresh: () => string
  /** A database on disk: in memory a commit becomes visible in parts. */
  readonly serve: () => Promise<RpcServer>
  /** `port` of the database; `dataDir` is kept over restarts. */
  readonly start: (port: number, dataDir?: string, env?: { readonly [name: string]: string }) => Promise<NodeBeside>
}

/** To be called once per file. */
export const besides = (): Besides => {
  const folder = temporaryFolder()
  afterAll(() => removeFolder(folder))
  let folders = 0
  const fresh = (): string => join(folder, `node-${folders++}`)
  return {
    fresh,
    serve: async () => {
      const server = await RpcServer.start({ path: `surrealkv://${fresh()}` })
      onTestFinished(() => server.kill())
      return server
    },
    start: async (port, dataDir = fresh(), env = {}) => {
      const node = await startBeside(port, dataDir, env)
      onTestFinished(() => node.stop())
      return node
    }
  }
}
