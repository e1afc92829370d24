/**
 * Resolves host names as this machine does, for `ports/Names`.
 *
 * The same question that connecting will ask, hosts file included: the judged address must be the called one.
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
