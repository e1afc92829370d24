/**
 * Host names as this machine resolves them, for `ports/Names`.
 *
 * The same question that connecting will ask, hosts file included: what is judged must be what is called.
 */

import { lookup } from "node:dns"
import { Effect, Layer } from "effect"
import { Names } from "../../ports/Names.ts"

export const layer: Layer.Layer<Names> = Layer.succeed(Names, {
  resolve: (host) =>
    Effect.async<ReadonlyArray<string>>((resume) =>
      lookup(host, { all: true }, (error, found) =>
        resume(Effect.succeed(error === null ? found.map(({ address }) => address) : []))
      )
    )
})
