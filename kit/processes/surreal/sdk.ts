/**
 * The official SDK's client as our own driver makes it, for tests that are another client of the same database.
 *
 * Why not `new Surreal()`: Node 20 has no WebSocket, and with two frames in one tick the SDK loses one unless events
 * come one at a time.
 */
import { createRequire } from "node:module"
import { type DriverOptions, Surreal } from "surrealdb"

const { WebSocket: Ws } = createRequire(import.meta.url)("ws") as {
  readonly WebSocket: new (url: string, protocols: string, options: object) => WebSocket
}

class OneAtATime extends Ws {
  constructor(url: string, protocols: string) {
    super(url, protocols, { allowSynchronousEvents: false })
  }
}

export const newClient = (options: DriverOptions = {}): Surreal =>
  new Surreal({ ...options, websocketImpl: OneAtATime as unknown as typeof WebSocket })

/** Whether a transaction failed because it met another one, and may be tried again. */
export const isConflict = (error: unknown): boolean => /write conflict|can be retried/i.test(String(error))

/** `work` again, until nothing another session does is in its way; any other failure ends it. */
export const persistently = async <A>(work: () => Promise<A>): Promise<A> => {
  for (;;) {
    try {
      return await work()
    } catch (error) {
      if (!isConflict(error)) throw error
    }
    await new Promise((done) => setTimeout(done, Math.random() * 4))
  }
}

/** Connected and signed in as root. */
export const rootClient = async (
  server: { readonly url: string; readonly user: string; readonly pass: string },
  namespace = "n",
  database = "d"
): Promise<Surreal> =>
  // The first who names a database defines it, and two who do so at once may conflict.
  persistently(async () => {
    const db = newClient()
    try {
      await db.connect(server.url, {
        namespace,
        database,
        authentication: { username: server.user, password: server.pass }
      })
      return db
    } catch (error) {
      await db.close()
      throw error
    }
  })
